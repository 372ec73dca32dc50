"""Reference file -> HDF5 -> statistics -> fine-tuning -> evaluation -> parity plots. README.md tells how to run it."""

from snakemake.utils import min_version

min_version("9.0")

# A file given with --configfile stands on its own; it does not inherit the values of the default run.
if not workflow.overwrite_configfiles:

    configfile: "config/config.yaml"


include: "workflow/rules/common.smk"
include: "workflow/rules/convert.smk"
include: "workflow/rules/import.smk"
include: "workflow/rules/statistics.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/plot.smk"


localrules:
    all,


rule all:
    default_target: True
    input:
        plots(),


onsuccess:
    print_results()


onerror:
    print_errors()
