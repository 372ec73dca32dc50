rule train:
    """
    Fine-tune a model on a dataset, or train it from scratch.

    Needs the training and validation splits, the imported model and the statistics; makes the best model by
    validation loss, history.csv, and the settings and provenance of the run. Checkpoints lie beside them and are not
    an output, because Snakemake deletes outputs before each attempt and a killed training continues from its last
    checkpoint. A training that gets a signal saves itself and ends with exit code 75; the shell and tee, which may get
    it too, wait for that.
    """
    input:
        train=dataset_of("train.h5"),
        valid=dataset_of("valid.h5"),
        model=model_of("model.json"),
        weights=model_of("weights.safetensors"),
        statistics=statistics_of,
    output:
        model="results/runs/{run}/model/model.json",
        weights="results/runs/{run}/model/weights.safetensors",
        history="results/runs/{run}/history.csv",
        config=report(
            "results/runs/{run}/config.yaml",
            caption="../report/config.rst",
            category="Settings and provenance",
            subcategory="{run}",
        ),
        provenance=report(
            "results/runs/{run}/provenance.json",
            caption="../report/provenance.rst",
            category="Settings and provenance",
            subcategory="{run}",
        ),
    log:
        "results/logs/train/{run}.log",
    benchmark:
        "results/benchmarks/train/{run}.tsv"
    conda:
        lambda wildcards: f"../../envs/{environment_of(wildcards)}.yaml"
    threads: 16
    resources:
        **RUN_JOB,
    params:
        settings=settings("train", "{run}"),
        processes=processes_of,
        data=subpath(input.train, parent=True),
        model=subpath(input.weights, parent=True),
        directory=subpath(output.history, parent=True),
    message:
        "Training run {wildcards.run}"
    shell:
        "trap : INT; "
        'python "$SCRIPTS"/train.py --config {params.settings:q} --run {wildcards.run:q}'
        " --data {params.data:q} --model {params.model:q} --statistics {input.statistics:q}"
        " --output {params.directory:q} --wait 2>&1 | tee {log:q}"
