rule plot:
    """
    Draw a run: parity plots and errors before and after training, its learning curve, and its data.

    Needs the metrics, predictions and history of a run, and its converted data, and of a run from scratch on the same
    data, which is shown beside, its metrics and predictions; makes a PNG and an SVG of each picture (and of the stress,
    where the reference has it).
    """
    input:
        expand("results/runs/{{run}}/predictions_{split}.h5", split=SPLITS),
        data=stores_of,
        metrics="results/runs/{run}/metrics.json",
        history="results/runs/{run}/history.csv",
        beside=lambda wildcards: evaluated(scratch_of(wildcards.run)),
    output:
        report(
            expand("results/runs/{{run}}/parity_energy.{picture}", picture=PICTURES),
            caption="../report/parity_energy.rst",
            category="Parity",
            subcategory="{run}",
        ),
        report(
            expand("results/runs/{{run}}/parity_forces.{picture}", picture=PICTURES),
            caption="../report/parity_forces.rst",
            category="Parity",
            subcategory="{run}",
        ),
        report(
            expand(
                "results/runs/{{run}}/error_by_element.{picture}", picture=PICTURES
            ),
            caption="../report/error_by_element.rst",
            category="Errors",
            subcategory="{run}",
        ),
        report(
            expand("results/runs/{{run}}/error_by_force.{picture}", picture=PICTURES),
            caption="../report/error_by_force.rst",
            category="Errors",
            subcategory="{run}",
        ),
        report(
            expand("results/runs/{{run}}/learning_curve.{picture}", picture=PICTURES),
            caption="../report/learning_curve.rst",
            category="Training",
            subcategory="{run}",
        ),
        report(
            expand("results/runs/{{run}}/data_overview.{picture}", picture=PICTURES),
            caption="../report/data_overview.rst",
            category="Data",
            subcategory="{run}",
        ),
    log:
        "results/logs/plot/{run}.log",
    benchmark:
        "results/benchmarks/plot/{run}.tsv"
    conda:
        "../../envs/workflow.yaml"
    threads: 1
    resources:
        **SMALL_JOB,
        mem_mb=2000,
        runtime=60,
    params:
        settings=settings("plot", "{run}"),
        data=lambda wildcards, input: os.path.dirname(input.data[0]),
        directory=subpath(input.metrics, parent=True),
        split=lambda wildcards: shown_split(RUNS[wildcards.run].evaluation.splits),
        beside=lambda wildcards: scratch_option(wildcards.run),
    message:
        "Plotting run {wildcards.run}"
    shell:
        'python "$SCRIPTS"/plot.py --config {params.settings:q} --run {wildcards.run:q}'
        " --data {params.data:q} --output {params.directory:q} {params.beside} 2>&1 | tee {log:q}"
