rule evaluate:
    """
    Compare the model before and after training with the reference.

    Needs the splits to evaluate, the imported model, the statistics and the trained model; makes metrics.json and
    one file of predictions per split, in eV and Å.
    """
    input:
        data=splits_of,
        foundation=model_of("weights.safetensors"),
        statistics=statistics_of,
        model="results/runs/{run}/model/model.json",
        weights="results/runs/{run}/model/weights.safetensors",
    output:
        expand("results/runs/{{run}}/predictions_{split}.h5", split=SPLITS),
        metrics=report(
            "results/runs/{run}/metrics.json",
            caption="../report/metrics.rst",
            category="Errors",
            subcategory="{run}",
        ),
    log:
        "results/logs/evaluate/{run}.log",
    benchmark:
        "results/benchmarks/evaluate/{run}.tsv"
    conda:
        lambda wildcards: f"../../envs/{environment_of(wildcards)}.yaml"
    threads: 16
    resources:
        **RUN_JOB,
    params:
        settings=settings("evaluate", "{run}"),
        processes=processes_of,
        data=lambda wildcards, input: os.path.dirname(input.data[0]),
        foundation=subpath(input.foundation, parent=True),
        directory=subpath(output.metrics, parent=True),
    message:
        "Evaluating run {wildcards.run}"
    shell:
        'python "$SCRIPTS"/evaluate.py --config {params.settings:q} --run {wildcards.run:q}'
        " --data {params.data:q} --model {params.foundation:q} --statistics {input.statistics:q}"
        " --output {params.directory:q} --wait 2>&1 | tee {log:q}"
