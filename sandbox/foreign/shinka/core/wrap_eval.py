"""Stands in for the module of that name."""

from shinka_eval import load_program, run_shinka_eval, save_json_results

__all__ = ["load_program", "run_shinka_eval", "save_json_results"]
