"""Evaluates with an `evaluator.py` that has `evaluate(program_path)`, as OpenEvolve and SkyDiscover call it.

    python evaluate_openevolve.py PROGRAM CONFIG

CONFIG is JSON: `evaluator`, the file's path below theirs, and `home`, the task's folder there; `cascade`, whether
stages are used where it has them; their `thresholds`; `features`, metrics that are left out of the mean that ranks
where there is no `combined_score`; `arguments`, by name, that `evaluate` gets after the path; `timeout`, seconds of
each stage, after which it counts as there: with what earlier stages measured, else 0.
"""

import contextlib
import importlib.util
import json
import os
import signal
import sys
import threading

from foreign_view import aside, placed, prepare_programs, report, show, view


def main(program, config):
    """Evaluate one program and print its score."""
    sys.excepthook = show
    folder = view()
    file = f"{folder}/{config['evaluator']}"
    prepare_programs()
    program = placed(program)
    home = f"{folder}/{config['home']}"
    os.chdir(home)
    with aside() as stdout:
        clock = Clock(stdout, config)
        metrics, artifacts = judged(loaded(file), program, config, clock.begin)
        clock.stop()
    report(fitness(metrics, config["features"]), metrics, {**artifacts, **unranked(metrics)})
    end()


def end():
    """Wait for no thread that an evaluator gave up: what counts is said."""
    if any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


class Clock:
    """Ends an evaluation whose stage takes too long, whatever its threads and processes do then."""

    def __init__(self, stdout, config):
        self.stdout = stdout
        self.config = config
        self.stage = 0
        self.metrics = {"error": 0.0}
        signal.signal(signal.SIGALRM, self.late)

    def begin(self, metrics=None):
        """A stage begins; `metrics` are those of the ones before."""
        self.metrics = self.metrics if metrics is None else metrics
        self.stage += 1
        signal.setitimer(signal.ITIMER_REAL, self.config["timeout"])

    def stop(self):
        """The last stage is over."""
        signal.setitimer(signal.ITIMER_REAL, 0)

    def late(self, *_):
        """Say what is known, and end."""
        os.dup2(self.stdout, 1)
        passed = {f"stage{self.stage}_passed": 0.0} if self.stage > 1 else {}
        told = {"timeout": f"stage {self.stage} took longer than {self.config['timeout']:g} s"}
        metrics = {**self.metrics, **passed}
        report(fitness(metrics, self.config["features"]), metrics, told)
        sys.stdout.flush()
        os._exit(0)


def loaded(file):
    """Their module; what lies beside it can be imported."""
    sys.path.insert(0, os.path.dirname(file))  # noqa: PTH120
    spec = importlib.util.spec_from_file_location("evaluation_module", file)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def judged(module, program, config, begin=lambda metrics=None: None):
    """Metrics and artifacts: of `evaluate`, or of the stages as far as each one's score reaches its threshold.

    `begin` is told that a stage begins, and what is known by then.
    """
    begin()
    if not config["cascade"] or not hasattr(module, "evaluate_stage1"):
        return parts(called(with_arguments(module.evaluate, config.get("arguments")), program))
    metrics, artifacts = parts(called(module.evaluate_stage1, program))
    for stage, threshold in enumerate(config["thresholds"][:2], start=2):
        evaluate = getattr(module, f"evaluate_stage{stage}", None)
        if evaluate is None or not passes(metrics, threshold):
            break
        begin(metrics)
        try:
            more, told = parts(called(evaluate, program))
        except Exception as error:  # noqa: BLE001 - whatever the program raises
            return {**metrics, f"stage{stage}_passed": 0.0}, {**artifacts, f"stage{stage}_error": repr(error)}
        metrics = {name: float(value) for name, value in {**metrics, **numbers(more)}.items() if is_number(value)}
        metrics.pop("error", None)
        artifacts = {**artifacts, **told, **{name: value for name, value in more.items() if not is_number(value)}}
    return metrics, artifacts


def with_arguments(evaluate, arguments):
    """Their `evaluate` with the arguments of the configuration, which OpenEvolve gives to no stage.

    Raises:
        SystemExit: it does not take them.
    """
    if not arguments:
        return evaluate
    import functools  # noqa: PLC0415 - few have any
    import inspect  # noqa: PLC0415

    with contextlib.suppress(ValueError):  # it has no signature
        signature = inspect.signature(evaluate)
        try:
            signature.bind(object(), **arguments)
        except TypeError as error:
            sys.exit(
                f"evaluator_args of the configuration ({', '.join(arguments)}) do not fit evaluate{signature}: {error}"
            )
    return functools.partial(evaluate, **arguments)


def called(evaluate, program):
    """What a function of theirs returns; one that is `async` is waited for, as its author means it."""
    result = evaluate(program)
    if hasattr(result, "__await__"):
        import asyncio  # noqa: PLC0415 - slow to import

        return asyncio.run(result)
    return result


def parts(result):
    """Metrics and artifacts of what an evaluator returned.

    Raises:
        SystemExit: it returned neither a mapping nor an `EvaluationResult`.
    """
    if isinstance(result, dict):
        return result, {}
    if hasattr(result, "metrics"):
        return dict(result.metrics), dict(getattr(result, "artifacts", None) or {})
    sys.exit(f"expected evaluate() to return a dict or an EvaluationResult, got {type(result).__name__}")


def is_number(value):
    """Whether it counts for a threshold; flags do, and where a stage's results are merged, as there."""
    return isinstance(value, int | float)


def numbers(metrics):
    """Those that are numbers."""
    return {name: value for name, value in metrics.items() if is_number(value)}


def passes(metrics, threshold):
    """Whether a stage's score is high enough for the next one."""
    if is_number(metrics.get("combined_score")):
        return metrics["combined_score"] >= threshold
    found = [float(value) for name, value in metrics.items() if is_number(value) and name != "error"]
    return bool(found) and sum(found) / len(found) >= threshold


def fitness(metrics, features):
    """What ranks: `combined_score`, where that is no number the mean of all metrics that are no features."""
    with contextlib.suppress(KeyError, TypeError, ValueError):
        return float(metrics["combined_score"])
    left = {name: value for name, value in metrics.items() if name not in features}
    return mean(left if any(map(counts, left.values())) else metrics)


def unranked(metrics):
    """What is told of a `combined_score` that is there and cannot rank."""
    value = metrics.get("combined_score", 0.0)
    try:
        float(value)
    except (TypeError, ValueError):
        return {"combined_score_error": f"{value!r} is no number: the mean of all other numbers ranks"}
    return {}


def counts(value):
    """Whether a value counts for what ranks: a flag is no score, nor is what is not a number."""
    return is_number(value) and not isinstance(value, bool) and value == value


def mean(metrics):
    """The mean of what counts; 0 where nothing does."""
    found = [float(value) for value in metrics.values() if counts(value)]
    return sum(found) / len(found) if found else 0.0


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
