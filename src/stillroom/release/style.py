"""How the card looks; plain CSS that any browser of the last ten years draws."""

CSS = """
:root { --ink: #1f2a33; --soft: #5b6873; --line: #d9dfe3; --paper: #fff; --ground: #f3f5f4;
  --green: #2e7d50; --amber: #b7791f; --red: #b3392b; --blue: #2b6cb0; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 2rem 1rem 3rem; }
header p:first-child { color: var(--green); font-weight: 600; letter-spacing: .04em; margin: 0; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: .2rem 0 .4rem; }
h2 { font-size: 1.15rem; margin: 0 0 .8rem; }
h3 { font-size: .85rem; margin: 0; color: var(--soft); text-transform: uppercase;
  letter-spacing: .06em; }
p { margin: .4rem 0; }
section { background: var(--paper); border: 1px solid var(--line); border-radius: 10px;
  padding: 1.2rem 1.4rem; margin: 1rem 0; }
section.watch { border-left: 6px solid var(--amber); }
section.known { border-left: 6px solid var(--blue); }
section.known li { font-weight: 600; }
.sheet { display: block; width: 100%; max-width: 36rem; image-rendering: pixelated; }
.bars { margin: 1rem 0; overflow-x: auto; }
.bars figcaption { color: var(--soft); font-size: .9rem; padding-bottom: .6rem; }
.bars svg { display: block; width: 100%; min-width: 36rem; }
.bars text { font-size: 14px; fill: var(--ink); }
.bars .heading { font-weight: 600; }
.bars .name { text-anchor: end; fill: var(--soft); }
.bars .teacher { fill: #7b8794; }
.bars .student { fill: var(--green); }
.bars .int8 { opacity: .55; }
.bars line { stroke: var(--soft); }
.alarm { background: var(--red); color: #fff; border-radius: 10px; padding: 1rem 1.4rem; }
.tiles { display: flex; flex-wrap: wrap; gap: 1rem; }
.tile { flex: 1 1 14rem; border: 1px solid var(--line); border-radius: 8px; padding: .9rem 1rem; }
.tile.certified { border: 2px solid var(--green); }
.tile p { color: var(--soft); font-size: .92rem; }
.figure, .tile p.figure { font-size: 1.7rem; line-height: 1.2; font-weight: 650; color: var(--ink);
  margin: .3rem 0; }
.tile.certified p.figure { color: var(--green); font-size: 2.4rem; }
.tile.certified.open { border-color: var(--red); }
.tile.certified.open p.figure { color: var(--red); }
ul { margin: .4rem 0; padding-left: 1.2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .93rem; }
th, td { text-align: left; padding: .35rem .7rem .35rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; font-variant-numeric: tabular-nums; }
thead th { color: var(--soft); font-weight: 600; }
.confusion { width: auto; margin-top: .8rem; }
.confusion caption { white-space: nowrap; text-align: left; color: var(--soft); font-size: .9rem;
  padding-bottom: .3rem; }
.confusion th, .confusion td { text-align: center; padding: .3rem .6rem; }
footer { color: var(--soft); font-size: .85rem; }
code { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: .9em;
  overflow-wrap: anywhere; }
@media print { body { background: #fff; } section { break-inside: avoid; } }
"""
