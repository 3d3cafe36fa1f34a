"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const SVG = "http://www.w3.org/2000/svg";
  const STYLES = 5;
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

  /* Elements are built, never parsed: no text of the data can become markup. */
  function make(kind, attributes = {}, text = "") {
    const element = document.createElementNS(SVG, kind);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text) element.textContent = text;
    return element;
  }
  function html(kind, name = "", text = "") {
    const element = document.createElement(kind);
    if (name) element.className = name;
    if (text) element.textContent = text;
    return element;
  }

  /* ---- curves ---- */

  function ticks(low, high, count) {
    const span = high - low || Math.abs(high) || 1;
    const power = 10 ** Math.floor(Math.log10(span / count));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => span / size <= count);
    const found = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) found.push(i * step);
    return { found, digits: clamp(-Math.floor(Math.log10(step) + 1e-9), 0, 8) };
  }
  /* Ticks of a logarithmic axis: the first, the last, and those between them that have room. */
  function spacedSteps(steps, place, room) {
    const found = [steps[0]], last = steps[steps.length - 1];
    for (const step of steps.slice(1, -1)) {
      if (place(step) - place(found[found.length - 1]) >= room && place(last) - place(step) >= room) found.push(step);
    }
    return last === steps[0] ? found : [...found, last];
  }
  const shortStep = (step) => step.toLocaleString("en-US", { maximumFractionDigits: 2 });
  const shortValue = (value) => Number(value.toPrecision(4)).toString();

  function drawChart(figure) {
    const chart = data.charts[Number(figure.dataset.chart)];
    const plot = figure.querySelector(".plot");
    const readout = figure.querySelector(".readout");
    const small = figure.classList.contains("small");
    const known = (value) => value !== null && value !== undefined;
    const lines = chart.series.map((series) => ({
      name: series.name,
      points: series.steps.map((step, i) => [step, series.values[i], series.low[i], series.high[i]]).filter((point) => known(point[1])),
    }));
    const all = lines.flatMap((line) => line.points);
    const steps = [...new Set(all.map((point) => point[0]))].sort((a, b) => a - b);
    if (!all.length) { readout.textContent = "No finite values."; return; }
    const xs = [steps[0], steps[steps.length - 1]];
    const values = chart.limits || all.map((point) => point[1]).reduce((range, v) => [Math.min(range[0], v), Math.max(range[1], v)], [Infinity, -Infinity]);
    const along = chart.logarithmic ? Math.log : (step) => step;
    let at = null, scaleX = null, cursor = null;

    function draw() {
      const width = plot.clientWidth, height = small ? 120 : 240, yTicks = ticks(values[0], values[1], small ? 3 : 6);
      const pad = (values[1] - values[0]) * 0.04 || Math.abs(values[0]) * 0.1 || 1;
      const low = values[0] - pad, high = values[1] + pad;
      const labels = yTicks.found.map((value) => value.toFixed(yTicks.digits));
      const left = 12 + 7.5 * Math.max(...labels.map((label) => label.length), 2), right = chart.logarithmic ? 20 : 12, top = 10, bottom = small ? 24 : 42;
      scaleX = (x) => left + ((along(x) - along(xs[0])) / (along(xs[1]) - along(xs[0]) || 1)) * (width - left - right);
      const scaleY = (y) => height - bottom - ((clamp(y, low, high) - low) / (high - low)) * (height - top - bottom);
      const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
      svg.append(make("title", {}, `${chart.title}: ${lines.map((line) => line.name).join(", ")}`));
      yTicks.found.forEach((value, i) => {
        svg.append(make("line", { class: "grid", x1: left, x2: width - right, y1: scaleY(value), y2: scaleY(value) }));
        svg.append(make("text", { x: left - 8, y: scaleY(value) + 4, "text-anchor": "end" }, labels[i]));
      });
      svg.append(make("line", { class: "axis", x1: left, x2: width - right, y1: height - bottom, y2: height - bottom }));
      const xTicks = chart.logarithmic ? spacedSteps(steps, scaleX, small ? 52 : 46) : ticks(xs[0], xs[1], clamp(Math.floor(width / 90), 2, 7)).found;
      for (const value of xTicks) {
        svg.append(make("text", { x: scaleX(value), y: height - bottom + 18, "text-anchor": "middle" }, shortStep(value)));
      }
      if (!small) svg.append(make("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, chart.x_label));
      const path = (points, column) => points.map((point, j) => `${j ? "L" : "M"}${scaleX(point[0]).toFixed(1)} ${scaleY(point[column]).toFixed(1)}`).join("");
      lines.forEach((line, i) => {
        const banded = line.points.filter((point) => known(point[2]) && known(point[3]));
        if (banded.length > 1) {
          const back = path([...banded].reverse(), 2).replace("M", "L");
          svg.append(make("path", { class: `band series-${i % STYLES}`, d: `${path(banded, 3)}${back}Z` }));
        }
      });
      lines.forEach((line, i) => {
        svg.append(make("path", { class: `line series-${i % STYLES}`, d: path(line.points, 1) }));
        if (line.points.length === 1) {
          svg.append(make("circle", { class: `dot series-${i % STYLES}`, cx: scaleX(line.points[0][0]), cy: scaleY(line.points[0][1]), r: 3.5 }));
        }
      });
      cursor = make("g");
      svg.append(cursor);
      cursor.show = (x) => {
        cursor.replaceChildren(make("line", { class: "cursor", x1: scaleX(x), x2: scaleX(x), y1: top, y2: height - bottom }));
        lines.forEach((line, i) => {
          const near = nearest(line, x);
          if (near) cursor.append(make("circle", { class: `dot series-${i % STYLES}`, cx: scaleX(near[0]), cy: scaleY(near[1]), r: 3.5 }));
        });
      };
      plot.replaceChildren(svg);
      if (at !== null) cursor.show(steps[at]);
    }
    const nearest = (line, x) => line.points.reduce((best, point) => (best === null || Math.abs(point[0] - x) < Math.abs(best[0] - x) ? point : best), null);
    function read(index) {
      at = index;
      const x = steps[index ?? steps.length - 1];
      readout.replaceChildren(chart.logarithmic ? `${shortStep(x)} ${chart.x_label}:` : `${index === null ? "Last" : "At"} ${chart.x_label} ${shortStep(x)}:`);
      for (const [i, line] of lines.entries()) {
        const near = nearest(line, x);
        if (!near) continue;
        readout.append(`${i ? " · " : " "}${line.name} `, html("b", "", chart.limits ? near[1].toFixed(2) : shortValue(near[1])), near[0] === x ? "" : ` (at ${shortStep(near[0])})`);
      }
      if (index === null) cursor.replaceChildren(); else cursor.show(x);
    }
    plot.addEventListener("pointermove", (event) => {
      const x = event.clientX - plot.getBoundingClientRect().left;
      read(steps.reduce((best, step, i) => (Math.abs(scaleX(step) - x) < Math.abs(scaleX(steps[best]) - x) ? i : best), 0));
    });
    plot.addEventListener("pointerleave", () => read(null));
    plot.addEventListener("blur", () => read(null));
    plot.addEventListener("keydown", (event) => {
      const here = at ?? steps.length - 1;
      const jumps = { ArrowLeft: here - 1, ArrowRight: at === null ? here : here + 1, Home: 0, End: steps.length - 1 };
      if (!(event.key in jumps)) return;
      event.preventDefault();
      read(clamp(jumps[event.key], 0, steps.length - 1));
    });
    draw();
    read(null);
    let drawn = plot.clientWidth;
    new ResizeObserver(() => { if (plot.clientWidth !== drawn) { drawn = plot.clientWidth; draw(); } }).observe(plot);
  }
  document.querySelectorAll(".chart").forEach(drawChart);

  /* ---- episode player ---- */

  function startPlayer(player) {
    const get = (id) => document.getElementById(id);
    const count = player.frames.length, last = count - 1;
    const tracks = new Map(player.tracks.map((track) => [track.variable, track]));
    const isWrong = (track, t) => Math.abs(track.decoded[t] - track.true[t]) > track.tolerance;
    const wrong = player.frames.map((_, t) => player.tracks.filter((track) => isWrong(track, t)).length);
    const slider = get("slider"), marks = get("marks"), errors = get("errors");
    let now = 0, timer = null;

    const rows = player.tracks.map((track) => {
      const row = html("tr"), name = html("th");
      track.variable.split(/(?<=_)/).forEach((piece) => name.append(piece, html("wbr"))); /* a long name breaks after _ */
      name.scope = "row";
      const cells = { truth: html("td", "truth"), value: html("td", "value"), verdict: html("td", "verdict") };
      const right = track.true.filter((_, t) => !isWrong(track, t)).length;
      row.append(name, ...Object.values(cells), html("td", "share", `${Math.round((100 * right) / count)} %`));
      return { row, track, ...cells };
    });
    get("values").querySelector("tbody").append(...rows.map((entry) => entry.row));

    marks.setAttribute("viewBox", `0 0 ${player.frame_width} ${player.frame_height}`);
    get("show-names").checked = player.markers.length <= 5;
    get("show-marks").addEventListener("change", drawMarks);
    get("show-names").addEventListener("change", drawMarks);
    if (!player.markers.length) document.querySelectorAll(".stage .legend").forEach((legend) => legend.remove());

    /* How many variables are wrong in each frame, as a strip over the slider. */
    const most = Math.max(...wrong, 1);
    errors.setAttribute("viewBox", `0 0 ${count} ${most}`);
    errors.setAttribute("aria-label", `Wrong values in each frame; at most ${Math.max(...wrong)} of ${player.tracks.length}`);
    const strip = make("path", { d: wrong.map((n, t) => (n ? `M${t} ${most}v${-n}h1v${n}z` : "")).join("") });
    const needle = make("line", { y1: 0, y2: most });
    errors.append(make("title", {}, "Wrong values in each frame"), strip, needle);

    const place = (axis, key) => (axis.variable === undefined || axis.variable === null
      ? axis.intercept : axis.slope * tracks.get(axis.variable)[key][now] + axis.intercept) + 0.5;
    function shapes(marker, key) {
      const x = marker.x ? place(marker.x, key) : null, y = marker.y ? place(marker.y, key) : null;
      const width = player.frame_width, height = player.frame_height;
      if ((x !== null && (x < 0 || x > width)) || (y !== null && (y < 0 || y > height))) return null;
      if (x === null) return { x: width / 2, y, path: `M0 ${y}H${width}` };
      if (y === null) return { x, y: height / 2, path: `M${x} 0V${height}` };
      if (key === "decoded") return { x, y, path: `M${x - 2.5} ${y - 2.5}l5 5m0 -5l-5 5` };
      const w = marker.width + 4, h = marker.height + 4;
      return { x, y, path: `M${x - w / 2} ${y - h / 2}h${w}v${h}h${-w}z` };
    }
    function mark(kind, path) {
      marks.append(make("path", { class: `${kind} halo`, d: path }), make("path", { class: kind, d: path }));
    }
    function drawMarks() {
      marks.replaceChildren();
      if (!player.markers.length || !get("show-marks").checked) return;
      for (const marker of player.markers) {
        const truth = shapes(marker, "true"), decoded = shapes(marker, "decoded");
        if (truth && decoded && Math.hypot(truth.x - decoded.x, truth.y - decoded.y) > 3) mark("link", `M${truth.x} ${truth.y}L${decoded.x} ${decoded.y}`);
        if (truth) mark("true", truth.path);
        if (decoded) mark("decoded", decoded.path);
        if (truth && get("show-names").checked) {
          const room = truth.x < player.frame_width * 0.7, side = marker.width / 2 + 4;
          const x = room ? truth.x + side : truth.x - side;
          marks.append(make("text", { x, y: truth.y - marker.height / 2 - 1, "text-anchor": room ? "start" : "end" }, marker.name));
        }
      }
    }

    function show(t) {
      now = clamp(t, 0, last);
      const right = player.tracks.length - wrong[now];
      const said = `Frame ${now + 1} of ${count}, ${right} of ${player.tracks.length} values right`;
      get("frame").src = `data:image/png;base64,${player.frames[now]}`;
      get("frame").alt = said;
      slider.value = now;
      slider.setAttribute("aria-valuetext", said);
      get("position").textContent = said;
      get("caption").textContent = player.captions.length ? player.captions[now] : "";
      needle.setAttribute("x1", now + 0.5);
      needle.setAttribute("x2", now + 0.5);
      for (const { row, track, truth, value, verdict } of rows) {
        const off = track.decoded[now] - track.true[now];
        truth.textContent = track.true[now];
        value.textContent = track.decoded[now];
        verdict.replaceChildren(isWrong(track, now) ? "✗ " : "✓ ", html("span", "words", off ? "off by " : "right"), off ? `${off > 0 ? "+" : "−"}${Number(Math.abs(off).toPrecision(10))}` : "");
        row.classList.toggle("wrong", isWrong(track, now));
      }
      drawMarks();
    }
    function play(on) {
      clearInterval(timer);
      timer = on ? setInterval(() => (now < last ? show(now + 1) : play(false)), 1000 / player.frames_per_second) : null;
      get("play").textContent = on ? "Pause" : "Play";
      get("play").setAttribute("aria-pressed", String(on));
      if (on && now === last) show(0);
    }
    function step(t) { play(false); show(t); }
    function nextMistake() {
      const ahead = [...wrong.keys()].map((i) => (now + 1 + i) % count).find((t) => wrong[t]);
      if (ahead !== undefined) step(ahead);
    }

    slider.addEventListener("input", () => step(Number(slider.value)));
    get("play").addEventListener("click", () => play(timer === null));
    get("previous").addEventListener("click", () => step(now - 1));
    get("next").addEventListener("click", () => step(now + 1));
    get("mistake").addEventListener("click", nextMistake);
    get("mistake").disabled = !wrong.some((n) => n);
    errors.addEventListener("pointerdown", (event) => {
      const box = errors.getBoundingClientRect();
      step(Math.floor(((event.clientX - box.left) / box.width) * count));
    });
    get("screen").addEventListener("pointerdown", () => get("screen").focus());
    get("player-box").addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      const control = event.target.closest("button, input[type=checkbox]");
      if (event.key === " " && control) return;
      const moves = {
        ArrowLeft: () => step(now - 1), ArrowRight: () => step(now + 1), Home: () => step(0), End: () => step(last),
        " ": () => play(timer === null), m: nextMistake, M: nextMistake,
      };
      if (!moves[event.key]) return;
      event.preventDefault();
      moves[event.key]();
    });
    show(0);
  }
  if (data.player) startPlayer(data.player);
})();
