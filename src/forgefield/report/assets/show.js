// Put the values of the chosen run and model into the plot, and let the axes of both plots hold all of theirs.
const [number, variant] = choice.value.split(":")
const {reference, structure, place, element, ...models} = stores[number].data
source.selected.indices = []
source.data = {x: reference, y: models[variant], structure, place, element}
let [low, high] = [Infinity, -Infinity]
for (const {data} of sources) {
  for (const values of [data.x, data.y]) {
    for (const value of values) {
      low = Math.min(low, value)
      high = Math.max(high, value)
    }
  }
}
const margin = 0.04 * (high - low) || 0.001
for (const range of ranges) {
  range.setv({start: low - margin, end: high + margin, reset_start: low - margin, reset_end: high + margin})
}
