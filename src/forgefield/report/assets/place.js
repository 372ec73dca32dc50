// Which value of its structure a point is, in words.
const axes = ["x", "y", "z"]
if (kind == "forces") {
  return `atom ${Math.floor(value / 3)} (${symbols[source.data.element[special_vars.index]]}), ${axes[value % 3]}`
}
return kind == "stress" ? `component ${axes[Math.floor(value / 3)]}${axes[value % 3]}` : "the whole structure"
