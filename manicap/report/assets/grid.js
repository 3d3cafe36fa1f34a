"use strict";
(() => {
  /* ---- one way of probing and one metric at a time; without scripts all are shown ---- */
  const picks = [...document.querySelectorAll(".picks select")];
  const panels = [...document.querySelectorAll(".panel")];
  function choose() {
    const chosen = Object.fromEntries(picks.map((pick) => [pick.id, pick.value]));
    for (const panel of panels) panel.hidden = Object.entries(chosen).some(([name, value]) => panel.dataset[name] !== value);
  }
  for (const pick of picks) pick.addEventListener("change", choose);
  choose();

  /* ---- sorting: a click sorts, another turns it round; blanks stay last ---- */
  const key = (row, index) => row.cells[index].dataset.value ?? row.cells[index].textContent.trim();
  function sort(table, index, ascending) {
    const body = table.tBodies[0], sign = ascending ? 1 : -1;
    const rows = [...body.rows].map((row, place) => ({ row, place, key: key(row, index) }));
    rows.sort((a, b) => {
      if ((a.key === "") !== (b.key === "")) return a.key === "" ? 1 : -1;
      const [x, y] = [Number(a.key), Number(b.key)];
      const order = Number.isNaN(x) || Number.isNaN(y) ? a.key.localeCompare(b.key) : x - y;
      return sign * order || a.place - b.place;
    });
    body.append(...rows.map((item) => item.row));
  }
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
    heads.forEach((head, index) => {
      head.querySelector("button").addEventListener("click", () => {
        const number = head.dataset.kind === "number";
        const was = head.getAttribute("aria-sort");
        const ascending = was === null ? !number : was === "descending";
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
        sort(table, index, ascending);
      });
    });
  }

  /* ---- details of a number: under the mouse, or touched ---- */
  for (const region of document.querySelectorAll(".with-details")) {
    const output = region.querySelector(".details"), hint = output.textContent;
    const show = (event) => {
      const cell = event.target.closest("td[title]");
      output.textContent = cell ? cell.title : hint;
    };
    region.addEventListener("pointerover", show);
    region.addEventListener("click", show);
  }
})();
