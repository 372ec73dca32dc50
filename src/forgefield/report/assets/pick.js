// Mark all values of the structure of the point that was clicked, in both plots, and say which structure it is.
const named = (panel, position) => {
  const number = choices[panel].value.split(":")[0]
  const {formula, file, frame, row, atoms} = tables[number].data
  return {formula: formulas[number][formula[position]], file: files[number][file[position]],
          frame: frame[position], row: row[position], atoms: atoms[position]}
}
const i = source.selected.indices[0]
const panel = sources.indexOf(source)
const picked = named(panel, source.data.structure[i])
const [x, y] = [source.data.x[i], source.data.y[i]]
const escaped = (text) => String(text).replace(/[&<>]/g, (c) => `&#${c.charCodeAt(0)};`)
const rows = [
  ["structure", picked.formula],
  ["atoms", picked.atoms],
  ["file", picked.file ?? "not known"],
  ["frame in it", picked.frame],
  ["index in the split", picked.row],
  ["reference", `${x.toFixed(4)} ${unit}`],
  ["predicted", `${y.toFixed(4)} ${unit}`],
  ["error", `${(y - x).toFixed(4)} ${unit}`],
]
const left = `style="text-align: left; vertical-align: top; white-space: nowrap; padding-right: 10px"`
details.text = `<table>${rows.map(([key, value]) => `<tr><th ${left}>${key}</th><td style="word-break: break-all">${escaped(value)}</td></tr>`).join("")}</table>`
sources.forEach((other, panel) => {
  const same = new Map()
  const marked = []
  other.data.structure.forEach((position, index) => {
    if (!same.has(position)) {
      const it = named(panel, position)
      same.set(position, it.formula == picked.formula && it.file == picked.file && it.frame == picked.frame)
    }
    if (same.get(position)) marked.push(index)
  })
  other.selected.indices = marked
})
