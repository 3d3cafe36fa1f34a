"""The annotation set `ari-2020`: which RAM byte holds what, for all 24 games.

Facts from mila-iqia/atari-representation-learning, where the table last changed in commit cc87a29 (9 June 2020);
mengli11235/DIM-UA and MST_DIM use the same. Addresses range from 0 to 127. Categories are listed beside the names,
whereas the 2019 code inferred them from parts of names. Within a game, variables are in the order of the categories.
"""

from manicap.atari.annotations.variables import (
    DISPLAY,
    MISC,
    Variable,
    agent,
    display,
    misc,
    other,
    slots,
    small,
    unsorted,
    within,
)

ARI_2020: dict[str, tuple[Variable, ...]] = {
    "asteroids": (
        *agent(player_x=73, player_y=74),
        *small(player_missile_x1=83, player_missile_x2=84, player_missile_y1=86, player_missile_y2=87),
        *other(**slots("enemy_asteroids_y", [*range(3, 10), *range(12, 20)])),
        *other(**slots("enemy_asteroids_x", [*range(21, 28), *range(30, 38)])),
        *within((DISPLAY, MISC), num_lives_direction=60),
        *display(player_score_high=61, player_score_low=62),
        *misc(player_missile1_direction=89, player_missile2_direction=90),
    ),
    "battle_zone": (
        *small(missile_y=105),
        *other(blue_tank_size_y=47, blue_tank_x=48, blue_tank2_size_y=53, blue_tank2_x=54),
        *display(num_lives=58, score=29),
        *misc(blue_tank_facing_direction=46, blue_tank2_facing_direction=52),
        *unsorted(compass_needles_angle=84, angle_of_tank=4, left_tread_position=59, right_tread_position=60),
        *unsorted(crosshairs_color=108),
    ),
    "berzerk": (
        *agent(player_x=19, player_y=11),
        *small(player_missile_x=22, player_missile_y=23, robot_missile_x=29, robot_missile_y=30),
        *other(enemy_evilOtto_x=46, enemy_evilOtto_y=89),
        *other(**slots("enemy_robots_x", range(65, 73)), **slots("enemy_robots_y", range(56, 65))),
        *display(num_lives=90, **slots("player_score", range(93, 96))),
        *misc(player_direction=14, player_missile_direction=21, robot_missile_direction=26),
        *misc(robots_killed_count=91, game_level=92),
    ),
    "bowling": (
        *agent(player_x=29, player_y=40),
        *small(ball_x=30, ball_y=41),
        *display(frame_number_display=36, score=33),
        *misc(**slots("pin_existence", range(57, 67))),
    ),
    "boxing": (
        *agent(player_x=32, player_y=34),
        *other(enemy_x=33, enemy_y=35),
        *display(enemy_score=19, clock=17, player_score=18),
    ),
    "breakout": (
        *agent(player_x=72),
        *small(ball_x=99, ball_y=101),
        *display(score=84),
        *misc(blocks_hit_count=77, **slots("block_bit_map", range(30))),
    ),
    "demon_attack": (
        *agent(player_x=22),
        *small(missile_y=21),
        *other(enemy_x1=17, enemy_x2=18, enemy_x3=19, enemy_y1=69, enemy_y2=70, enemy_y3=71),
        *display(num_lives=114),
        *misc(level=62),
    ),
    "freeway": (
        *agent(player_y=14),
        *other(**slots("enemy_car_x", range(108, 118))),
        *display(score=103),
    ),
    "frostbite": (
        *agent(player_x=102, player_y=100),
        *other(top_row_iceflow_x=34, second_row_iceflow_x=33, third_row_iceflow_x=32, fourth_row_iceflow_x=31),
        *other(enemy_bear_x=104, **slots("enemy_x", range(84, 88))),
        *display(num_lives=76, **slots("score", range(72, 75))),
        *misc(igloo_blocks_count=77, player_direction=4),
    ),
    "hero": (
        *agent(player_x=27, player_y=31),
        *display(power_meter=43, **slots("score", range(56, 58))),
        *misc(room_number=28, level_number=117, dynamite_count=50),
    ),
    "montezuma_revenge": (
        *agent(player_x=42, player_y=43),
        *other(enemy_skull_x=47, enemy_skull_y=46, key_monster_x=44, key_monster_y=45),
        *display(num_lives=58, **slots("score", range(19, 22))),
        *misc(room_number=3, player_direction=52, level=57, items_in_inventory_count=61, room_state=62),
    ),
    "ms_pacman": (
        *agent(player_x=10, player_y=16),
        *other(enemy_sue_x=6, enemy_inky_x=7, enemy_pinky_x=8, enemy_blinky_x=9),
        *other(enemy_sue_y=12, enemy_inky_y=13, enemy_pinky_y=14, enemy_blinky_y=15),
        *other(fruit_x=11, fruit_y=17),
        *display(player_score=120, num_lives=123),
        *misc(ghosts_count=19, player_direction=56, dots_eaten_count=119),
    ),
    "pitfall": (
        *agent(player_x=97, player_y=105),
        *other(enemy_logs_x=98, enemy_scorpion_x=99, bottom_of_rope_y=18),
        *display(clock_sec=89, clock_min=88),
    ),
    "pong": (
        *agent(player_y=51, player_x=46),
        *small(ball_x=49, ball_y=54),
        *other(enemy_y=50, enemy_x=45),
        *display(enemy_score=13, player_score=14),
    ),
    "private_eye": (
        *agent(player_x=63, player_y=86),
        *other(dove_x=48, dove_y=39),
        *display(clock_0=67, clock_1=69, **slots("score", range(73, 75))),
        *misc(room_number=92, player_direction=58),
    ),
    "qbert": (
        *agent(player_x=43, player_y=67, player_column=35),
        *other(red_enemy_column=69, green_enemy_column=105),
        *display(**slots("score", range(89, 92))),
        # The pyramid, row by row from the top.
        *unsorted(**slots("tile_color", [21, 52, 54, 83, 85, 87, 98, 100, 102, 104])),
        *unsorted(**slots("tile_color", [1, 3, 5, 7, 9, 32, 34, 36, 38, 40, 42], first=10)),
    ),
    "riverraid": (
        *agent(player_x=51),
        *small(missile_x=117, missile_y=50),
        *display(fuel_meter_high=55, fuel_meter_low=56),
    ),
    "seaquest": (
        *agent(player_x=70, player_y=97),
        *small(player_missile_x=103, **slots("diver_or_enemy_missile_x", range(71, 75))),
        *other(**slots("enemy_obstacle_x", range(30, 34))),
        *display(oxygen_meter_value=102, num_lives=59, **slots("score", range(57, 59))),
        *misc(player_direction=86, player_missile_direction=87, divers_collected_count=62),
    ),
    "skiing": (
        *agent(player_x=25),
        *other(**slots("object_y", range(87, 94))),
        *display(clock_m=104, clock_s=105, clock_ms=106, score=107),
    ),
    "space_invaders": (
        *agent(player_x=28),
        *small(missiles_y=9),
        *other(enemies_x=26, enemies_y=24),
        *display(player_score=104, num_lives=73),
        *misc(invaders_left_count=17),
    ),
    "tennis": (
        *agent(player_x=26, player_y=24),
        *small(ball_x=16, ball_y=17),
        *other(enemy_x=27, enemy_y=25),
        *display(enemy_score=70, player_score=69),
    ),
    "venture": (
        *agent(player_x=85, player_y=26),
        *other(sprite0_y=20, sprite1_y=21, sprite2_y=22, sprite3_y=23, sprite4_y=24, sprite5_y=25),
        *other(sprite0_x=79, sprite1_x=80, sprite2_x=81, sprite3_x=82, sprite4_x=83, sprite5_x=84),
        *display(num_lives=70, score_1_2=71, score_3_4=72),
        *misc(current_room=90),
    ),
    "video_pinball": (
        *agent(player_left_paddle_y=98, player_right_paddle_y=102),
        *small(ball_x=67, ball_y=68),
        *display(score_1=48, score_2=50),
    ),
    "yars_revenge": (
        *agent(player_x=32, player_y=31),
        *small(player_missile_x=38, player_missile_y=37, enemy_missile_x=47, enemy_missile_y=46),
        *other(enemy_x=43, enemy_y=42),
    ),
}
