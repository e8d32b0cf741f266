"""What is done before the clock of a call starts: its code compiled, and what that imports of the libraries imported.

Nothing of the candidate's runs here: its files are read, not imported. What is found is used by the first call alone.
"""

import contextlib
import gc
import importlib
import os
import sys
from importlib.machinery import PathFinder, SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location

SYNTAX_ALONE = 0x400  # PyCF_ONLY_AST of compile(), without a module that nobody else needs


class Compiled(SourceFileLoader):
    """Loads a module from the code that was made of it."""

    def __init__(self, name, path, code):
        super().__init__(name, path)
        self.code = code

    def get_code(self, fullname):
        """The code, whatever is in the file now."""
        return self.code


class Ahead:
    """Finds the modules of a folder that were compiled; it belongs at the front of `sys.meta_path`."""

    def __init__(self, folder):
        self.folder = folder
        self.specs = {}
        self.modules = {}
        self.codes = {}

    def find_spec(self, name, path=None, target=None):
        """As the import system asks for it."""
        return self.specs.get(name)

    def prepare(self, target):
        """Compile the module and what it imports of the folder, and import what it imports from elsewhere."""
        todo, seen = [target.partition(":")[0]], set()
        while todo:
            name = todo.pop()
            if name in seen:
                continue
            seen.add(name)
            with contextlib.suppress(Exception):  # if it cannot be imported, the call will say so
                if self.is_ours(name):
                    todo += self.compiled(name)
                else:
                    importlib.import_module(name)

    def load(self, name):
        """Import a module that was compiled, and the packages above it, as `import` does; any other is left to that."""
        parent, _, last = name.rpartition(".")
        if name in sys.modules or name not in self.modules or (parent and not self.load(parent)):
            return name in sys.modules
        module = sys.modules[name] = self.modules[name]
        try:
            exec(self.codes[name], module.__dict__)  # noqa: S102 - this is what importing is
        except BaseException:
            sys.modules.pop(name, None)
            raise
        if parent:
            setattr(sys.modules[parent], last, module)
        return True

    def rehearse(self):
        """Import something of our own in the same way: the first time takes 0.1 ms more than the next ones."""
        code = compile("def call(*args): return args", "rehearsal", "exec")
        self.keep("rehearsal", "rehearsal", code, None)
        self.load("rehearsal")
        sys.modules["rehearsal"].call()
        importlib.import_module("rehearsal")
        for kept in (sys.modules, self.specs, self.modules, self.codes):
            del kept["rehearsal"]
        sys.stdout.flush()
        sys.stderr.flush()
        gc.freeze()  # collections of garbage during the call leave out what was there before it

    def keep(self, name, file, code, inside):
        """Keep what a module needs that is made of this code; its packages are found `inside`."""
        loader = Compiled(name, file, code)
        spec = self.specs[name] = spec_from_file_location(name, file, loader=loader, submodule_search_locations=inside)
        self.modules[name], self.codes[name] = module_from_spec(spec), code

    def forget(self):
        """Find nothing from now on: files may have changed."""
        for kept in (self.specs, self.modules, self.codes):
            kept.clear()

    def is_ours(self, name):
        """Whether a module would be found in the folder."""
        return PathFinder.find_spec(name.partition(".")[0], [self.folder]) is not None

    def compiled(self, name):
        """Compile a module of the folder; the names of those that it, or a package above it, imports."""
        parent, places = name.rpartition(".")[0], [self.folder]
        above = [parent] if parent else []
        if parent:
            if parent not in self.specs:
                self.compiled(parent)
            places = self.specs[parent].submodule_search_locations
        found = PathFinder.find_spec(name, places)
        if type(found.loader) is not SourceFileLoader:
            if found.submodule_search_locations is not None:  # a folder without __init__.py
                self.specs[name] = found
            return above
        text = found.loader.get_data(found.origin)
        code = compile(text, found.origin, "exec", dont_inherit=True)
        inside = found.submodule_search_locations
        self.keep(name, found.origin, code, inside)
        tree = compile(text, found.origin, "exec", SYNTAX_ALONE, dont_inherit=True)
        return above + list(imported(tree, name if inside is not None else parent))


def imported(tree, package):
    """Full names of the modules that a module of a package imports, anywhere in it."""
    todo = [tree]
    while todo:
        node = todo.pop()
        kind = type(node).__name__
        if kind == "Import":
            yield from (alias.name for alias in node.names)
        elif kind == "ImportFrom":
            base = module_of(node, package)
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names if node.level)
        else:
            todo += below(node)


def below(node):
    """The nodes in the fields of a node of a syntax tree that can hold statements."""
    fields = (getattr(node, name, ()) for name in ("body", "orelse", "finalbody", "handlers", "cases"))
    return [each for field in fields if isinstance(field, list) for each in field]


def module_of(node, package):
    """The module that `from ... import` names, dots in front of it resolved."""
    if not node.level:
        return node.module
    base = package.rsplit(".", node.level - 1)[0] if node.level > 1 else package
    return f"{base}.{node.module}" if node.module else base


def get_ready(target):
    """Prepare a call in a process that has run nothing of the candidate's; its folder can be imported from then on.

    What was compiled is found until it is told to forget.
    """
    ahead = Ahead(os.getcwd())  # noqa: PTH109 - pathlib is slow to import
    sys.meta_path.insert(0, ahead)
    ahead.prepare(target)
    ahead.rehearse()
    sys.path.insert(0, ahead.folder)
    return ahead
