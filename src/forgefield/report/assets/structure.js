// The structure of a point, in words.
const number = choice.value.split(":")[0]
const table = tables[number].data
const file = files[number][table.file[value]]?.split("/").pop()
return `${formulas[number][table.formula[value]]}, ${file ? file + ", " : ""}frame ${table.frame[value]}`
