rule statistics:
    """
    Fit per-element energy shifts and describe the training set as the model will see it.

    Needs the training split and the imported model; makes one JSON file with the shifts, force RMS, neighbor
    counts at the model's cutoff, the largest structure and the outliers.
    """
    input:
        train="results/datasets/{dataset}/train.h5",
        model="results/models/{model}/model.json",
        weights="results/models/{model}/weights.safetensors",
    output:
        "results/statistics/{dataset}-{model}.json",
    log:
        "results/logs/statistics/{dataset}-{model}.log",
    benchmark:
        "results/benchmarks/statistics/{dataset}-{model}.tsv"
    conda:
        lambda wildcards: f"../../envs/{environment_of(wildcards)}.yaml"
    threads: 4
    resources:
        **SMALL_JOB,
        mem_mb=4000,
        runtime=120,
    params:
        settings=settings("statistics", "{dataset}-{model}"),
        data=subpath(input.train, parent=True),
        model=subpath(input.weights, parent=True),
    message:
        "Computing statistics of dataset {wildcards.dataset} for model {wildcards.model}"
    shell:
        'python "$SCRIPTS"/compute_statistics.py --config {params.settings:q} --data {params.data:q}'
        " --model {params.model:q} --output {output:q} 2>&1 | tee {log:q}"
