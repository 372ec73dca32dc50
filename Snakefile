"""Reference file -> HDF5 -> statistics -> fine-tuning -> evaluation -> plots and report. README.md tells how to run it."""

from snakemake.utils import min_version

min_version("9.0")

# A file given with --configfile stands on its own; it does not inherit the values of the default run.
if not workflow.overwrite_configfiles:

    configfile: "config/config.yaml"


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/convert.smk"
include: "workflow/rules/import.smk"
include: "workflow/rules/statistics.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/plot.smk"
include: "workflow/rules/report.smk"


localrules:
    all,


rule all:
    default_target: True
    input:
        plots(),
        "results/report.html",


onsuccess:
    print_results()


onerror:
    print_errors()
