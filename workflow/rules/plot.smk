rule plot:
    """
    Draw the parity plots of energy per atom and force components, before and after training, and the learning curve.

    Needs the metrics, predictions and history of a run; makes a PNG and an SVG of each (and of the stress, where
    the reference has it).
    """
    input:
        expand("results/runs/{{run}}/predictions_{split}.h5", split=SPLITS),
        metrics="results/runs/{run}/metrics.json",
        history="results/runs/{run}/history.csv",
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
            expand("results/runs/{{run}}/learning_curve.{picture}", picture=PICTURES),
            caption="../report/learning_curve.rst",
            category="Training",
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
        directory=subpath(input.metrics, parent=True),
    message:
        "Plotting run {wildcards.run}"
    shell:
        'python "$SCRIPTS"/plot.py --config {params.settings:q} --run {wildcards.run:q}'
        " --output {params.directory:q} 2>&1 | tee {log:q}"
