"use strict";
// Draws every .figure from the JSON beside it, in the colours of the style sheet, and again whenever those change.
(() => {
  const divs = [...document.querySelectorAll(".figure")];
  const specs = new Map(divs.map((div) => [div, document.getElementById(div.dataset.source).textContent]));
  const touch = matchMedia("(pointer: coarse)").matches;
  // The buttons are listed one by one, because plotly's own choice has one that sends the data to its makers.
  const config = { responsive: true, displaylogo: false, displayModeBar: touch ? false : "hover", plotlyServerURL: "",
                   modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]] };
  const dashes = ["solid", "dash", "dot"];

  // The colour parts that a trace can play; drawing.py names them in `meta`.
  const parts = {
    points: (trace, { series }, colour) => {
      trace.marker.color ??= colour(`--series-${series}`);
    },
    line: (trace, { series }, colour) => {
      const dash = trace.line?.dash ?? dashes[Math.floor(series / 6) % 3];
      trace.line = { color: colour(`--series-${series % 6}`), width: 2, dash };
    },
    bar: (trace, { series }, colour) => {
      trace.marker = { color: colour(`--series-${series % 6}`) };
      if (trace.error_y) Object.assign(trace.error_y, { color: colour("--ink"), thickness: 1 });
    },
    mark: (trace, _, colour) => {
      trace.marker.line.color = colour("--ink");
    },
    band: (trace, { series }, colour) => {
      trace.fillcolor = `${colour(`--series-${series % 6}`)}33`;
    },
    matrix: (trace, { signed }, colour) => {
      const names = signed ? ["--matrix-low", "--matrix-zero", "--matrix-high"] : ["--matrix-zero", "--matrix-high"];
      trace.colorscale = names.map((name, i) => [i / (names.length - 1), colour(name)]);
    },
    blank: (trace, _, colour) => {
      trace.colorscale = [0, 1].map((end) => [end, colour("--rule-strong")]);
    },
  };

  function themed(text, width) {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const { data, layout } = JSON.parse(text);
    data.forEach((trace) => parts[trace.meta.part](trace, trace.meta, colour));
    for (const axis of [layout.xaxis, layout.yaxis]) {
      Object.assign(axis, { gridcolor: colour("--rule"), zerolinecolor: colour("--rule-strong"), linecolor: colour("--rule-strong"),
                            tickfont: { color: colour("--muted"), size: 11 }, nticks: width < 200 ? 4 : 6,
                            tickangle: axis.type === "category" ? "auto" : 0, // long names of bars are turned, numbers never
                            title: { ...axis.title, font: { color: colour("--muted"), size: 12 } } });
    }
    return { data, layout: { ...layout,
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", autosize: true, dragmode: touch ? false : "zoom",
      font: { family: style.getPropertyValue("--sans"), color: colour("--ink"), size: 12 },
      hoverlabel: { bgcolor: colour("--raised"), bordercolor: colour("--rule-strong"), namelength: -1,
                    font: { color: colour("--ink"), size: 12 } },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("--muted"), activecolor: colour("--ink") },
    } };
  }

  async function paint(div) {
    const { data, layout } = themed(specs.get(div), div.clientWidth);
    if (matchMedia("print").matches) Object.assign(layout, { width: div.clientWidth, height: div.clientHeight });
    await Plotly.react(div, data, layout, config);
    div.dataset.drawn = "true";
  }

  const repaint = () => divs.forEach(paint);

  // A sample under the pointer is shown in every panel of its figure.
  function link(panels) {
    let busy = false;
    const others = (div, then) => {
      if (busy) return;
      busy = true;
      panels.filter((other) => other !== div && other.data[0].x.length === div.data[0].x.length).forEach(then);
      busy = false;
    };
    panels.forEach((div) => {
      div.on("plotly_hover", ({ points: [{ curveNumber, pointNumber }] }) =>
        others(div, (other) => Plotly.Fx.hover(other, [{ curveNumber, pointNumber }])));
      div.on("plotly_unhover", () => others(div, (other) => Plotly.Fx.unhover(other)));
    });
  }

  // Links lead into folded tables, and on paper nothing is folded.
  const folded = () => [...document.querySelectorAll("details:not([open])")];
  let opened = [];
  function unfoldTarget() {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const fold = target && target.closest("details");
    if (fold && !fold.open) {
      fold.open = true;
      target.scrollIntoView();
    }
  }
  function unfoldForPrint({ matches }) {
    opened.forEach((fold) => (fold.open = false));
    opened = matches ? folded() : [];
    opened.forEach((fold) => (fold.open = true));
  }

  async function start() {
    unfoldTarget();
    addEventListener("hashchange", unfoldTarget);
    matchMedia("print").addEventListener("change", unfoldForPrint);
    for (const div of divs) {
      await paint(div);
      await new Promise((resume) => setTimeout(resume)); // the page stays responsive between figures
    }
    document.querySelectorAll(".plate.scatter").forEach((plate) => link([...plate.querySelectorAll(".figure")]));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
    matchMedia("print").addEventListener("change", repaint);
  }

  start();
})();
