"""Benchmarks as tasks of lm-eval and of inspect, with ifqa's scores.

    lm-eval run --tasks ifqa_full_dev --include_path "$(ifqa tasks)" --model hf ...
    inspect eval ifqa/questions -T benchmark=ifqa -T split=full-dev --model ...

Neither tool is imported here: each finds its tasks, lm-eval by the YAML files of this folder,
inspect by the entry point `inspect_ai`. ifqa must be installed beside it.
"""
