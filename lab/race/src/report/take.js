"use strict";
// Each table as CSV or JSON, from the record that its chapter holds or from its own cells, when somebody asks for it.
(() => {
  const columns = JSON.parse(document.getElementById("columns").textContent);
  const computed = {
    pairs: (r) => r.launch_pairs.reduce((a, b) => a + b, 0),
    launches: (r) => r.launch_pairs.length,
    bytes_per_second: (r) => (r.bytes == null ? "" : ((r.bytes / r.median) * 1e9).toFixed(0)),
    counted_per_second: (r) => (r.counted == null ? "" : (1e9 / r.median).toFixed(1)),
  };
  const field = (value) => {
    const text = String(value ?? "");
    return /[,"\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const csv = (names, rows) => [names, ...rows].map((row) => row.map(field).join(",") + "\n").join("");

  const record = async (chapter) => {
    const packed = atob(chapter.querySelector("a.whole").getAttribute("href").split(",")[1]);
    const bytes = Uint8Array.from(packed, (c) => c.charCodeAt(0));
    const text = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(text).text());
  };

  const results = async (chapter, of, ending) => {
    const floors = JSON.parse(chapter.dataset.floors);
    const all = (await record(chapter)).results;
    // Samples are in the record alone; floors that the record lacks are the page's.
    const rows = all
      .map(({ samples, baseline_samples, ...row }, i) => (i in floors ? { ...row, floor: floors[i] } : row))
      .filter((row) => row.subject.split("/")[0] === of);
    if (ending === "json") return JSON.stringify(rows);
    return csv(columns, rows.map((row) => columns.map((c) => (c in computed ? computed[c](row) : row[c]))));
  };

  const cells = (table, ending) => {
    const texts = (row) => [...row.cells].map((cell) => cell.textContent.trimEnd());
    const names = texts(table.tHead.rows[0]);
    const rows = [...table.tBodies[0].rows].map(texts);
    if (ending === "csv") return csv(names, rows);
    return JSON.stringify(rows.map((row) => Object.fromEntries(row.map((cell, i) => [names[i], cell]))));
  };

  const take = async (place, ending) => {
    const { file, of } = place.dataset;
    const table = place.previousElementSibling.querySelector("table");
    const text = of === undefined ? cells(table, ending) : await results(place.closest("main"), of, ending);
    const type = ending === "csv" ? "text/csv" : "application/json";
    const link = document.createElement("a");
    link.download = `${file}.${ending}`;
    link.href = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
    link.click();
    // The browser may still be reading.
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  };

  for (const place of document.querySelectorAll(".take")) {
    for (const button of place.querySelectorAll("button")) {
      const words = button.textContent;
      button.onclick = () =>
        take(place, words.toLowerCase()).catch((e) => (button.textContent = `${words}: not in this browser (${e})`));
    }
    place.hidden = false;
  }
})();
