"""What ShinkaEvolve's evaluators call: `run_shinka_eval` runs a function of the program, and writes what it measured.

Written from the interface alone. Early stopping is not done: all runs are.
"""

import importlib.util
import json
import math
import os
import statistics
import time
from concurrent.futures import ProcessPoolExecutor

FAILED = {
    "combined_score": 0.0,
    "execution_time_mean": 0.0,
    "execution_time_std": 0.0,
    "num_successful_runs": 0,
    "num_valid_runs": 0,
    "num_invalid_runs": 0,
    "all_validation_errors": [],
}
"""Metrics of a program that raises."""


def load_program(program_path):
    """The program as a module."""
    spec = importlib.util.spec_from_file_location("program", program_path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_shinka_eval(
    program_path,
    results_dir,
    experiment_fn_name,
    num_runs,
    get_experiment_kwargs=None,
    aggregate_metrics_fn=None,
    validate_fn=None,
    plotting_fn=None,
    default_metrics_on_error=None,
    run_workers=1,
    max_workers_cap=None,
    **_,
):
    """Run the function so many times, validate each result, add up; gives metrics, whether all is valid, and why not.

    What makes plots, and ends early, is accepted and not used.
    """
    kwargs = (get_experiment_kwargs(n) if get_experiment_kwargs else {"seed": n + 1} for n in range(num_runs))
    workers = min(run_workers, num_runs, max_workers_cap or run_workers)
    results, times, verdicts = [], [], []
    try:
        for result, took in _run(program_path, experiment_fn_name, kwargs, workers):
            results.append(result)
            times.append(took)
            verdicts += [validate_fn(result)] if validate_fn else []
        metrics = aggregate_metrics_fn(results) if aggregate_metrics_fn else {"num_successful_runs": len(results)}
        finite = math.isfinite(metrics.get("combined_score", 0.0))
    except Exception as error:  # noqa: BLE001 - whatever the program raises
        print(f"Evaluation error: {error!r}")
        metrics, told = {**FAILED, **(default_metrics_on_error or {})}, str(error) or repr(error)
        save_json_results(results_dir, metrics, False, told)
        return metrics, False, told
    metrics["execution_time_mean"] = statistics.fmean(times) if times else 0.0
    metrics["execution_time_std"] = statistics.pstdev(times) if times else 0.0
    errors = dict.fromkeys(message for fine, message in verdicts if not fine and message)
    valid = sum(bool(fine) for fine, _ in verdicts)
    if validate_fn:
        invalid = len(results) - valid
        metrics.update(num_valid_runs=valid, num_invalid_runs=invalid, all_validation_errors=list(errors))
    correct, told = not validate_fn or valid == len(results), next((f"Validation failed: {e}" for e in errors), None)
    if not finite:
        correct, told = False, told or f"combined_score is {metrics['combined_score']}"
    metrics.pop("extra_data", None)
    save_json_results(results_dir, metrics, correct, told)
    return metrics, correct, told


def save_json_results(results_dir, metrics, correct, error=None):
    """Write what was measured, and whether it counts, where the other side reads it."""
    os.makedirs(results_dir, exist_ok=True)  # noqa: PTH103
    for name, value in (("correct", {"correct": bool(correct), "error": error}), ("metrics", metrics)):
        with open(f"{results_dir}/{name}.json", "w", encoding="utf-8") as file:  # noqa: PTH123
            json.dump(value, file, default=_plain)


def _run(program_path, name, kwargs, workers):
    """The result of each run and the seconds that it took; in one process each is drawn and done when asked for."""
    if workers > 1:
        with ProcessPoolExecutor(workers) as pool:
            yield from list(pool.map(_one, [(program_path, name, each) for each in kwargs]))
    else:
        function = getattr(load_program(program_path), name)
        yield from (_timed(function, each) for each in kwargs)


def _one(run):
    program_path, name, kwargs = run
    return _timed(getattr(load_program(program_path), name), kwargs)


def _timed(function, kwargs):
    began = time.perf_counter()
    result = function(**kwargs)
    return result, time.perf_counter() - began


def _plain(value):
    """A number or list of numpy, as JSON knows it."""
    return value.tolist() if hasattr(value, "tolist") else str(value)
