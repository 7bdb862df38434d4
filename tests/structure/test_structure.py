"""The rules of docs/architecture.md that a machine can check: layers, file sizes, exported symbols, headers, installation.

Run by ctest: python3 test_structure.py SOURCE_DIR BUILD_DIR
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD = (os.path.abspath(p) for p in sys.argv[1:3])

# What a layer may include from other layers of src/ (and always its own headers and include/theo/).
MAY_INCLUDE = {
    "base": set(),
    "formats": {"base"},
    "kernels": {"base"},
    "imageio": {"base"},
    "geometry": {"base", "kernels"},
    "engine": {"base", "kernels"},
    "models": {"base", "kernels", "engine", "formats", "geometry", "imageio"},
    "api": {"base", "kernels", "engine", "formats", "geometry", "imageio", "models"},
}
PUBLIC_ONLY = ["cli", "bench", "server", "python"]  # programs see include/theo/ alone
MAX_LINES = {".c": 800, ".h": 250, ".inc": 800}
HEADER_LINES = {"theo.h": 450}


def sources(folder, endings=(".c", ".h", ".inc")):
    for root, _, names in os.walk(os.path.join(SOURCE, folder)):
        for name in sorted(names):
            if name.endswith(endings):
                yield os.path.join(root, name)


def includes(path):
    with open(path, encoding="utf-8") as f:
        return re.findall(r'^\s*#\s*include\s+(["<][^">]+)[">]', f.read(), re.M)


class Structure(unittest.TestCase):
    def test_layers_include_downwards_only(self):
        count = 0
        for layer, allowed in MAY_INCLUDE.items():
            for path in sources(f"src/{layer}"):
                for name in includes(path):
                    target = name[1:].split("/")[0] if "/" in name and name[0] == '"' else None
                    if target in MAY_INCLUDE:
                        count += 1
                        self.assertIn(target, allowed | {layer}, f"{path} includes {name[1:]}")
                    self.assertNotIn("..", name, f"{path} includes {name[1:]}")
        self.assertGreater(count, 20)

    def test_programs_use_the_public_headers_only(self):
        for folder in PUBLIC_ONLY:
            for path in sources(folder):
                for name in includes(path):
                    inner = name[1:].split("/")[0] in MAY_INCLUDE
                    self.assertFalse(name[0] == '"' and inner, f"{path} includes {name[1:]}")

    def test_public_headers_include_no_third_party(self):
        known = {"stdbool.h", "stddef.h", "stdint.h"}
        for path in sources("include"):
            for name in includes(path):
                self.assertTrue(name[1:] in known or name.startswith("<theo/"), f"{path} includes {name[1:]}")

    def test_files_are_of_a_readable_size(self):
        for folder in ("src", "cli", "include", "bench", "tests", "fuzz"):
            for path in sources(folder):
                with open(path, encoding="utf-8") as f:
                    lines = sum(1 for _ in f)
                limit = HEADER_LINES.get(os.path.basename(path), MAX_LINES[os.path.splitext(path)[1]])
                self.assertLessEqual(lines, limit, f"{path} has {lines} lines")

    def test_file_names_are_unique(self):
        seen = {}
        for folder in ("src", "cli"):
            for path in sources(folder, (".c",)):
                name = os.path.basename(path)
                self.assertNotIn(name, seen, f"{path} and {seen.get(name)}")
                seen[name] = path

    def test_only_theo_symbols_are_exported(self):
        out = subprocess.run(["nm", "-D", "--defined-only", os.path.join(BUILD, "src", "libtheo.so")],
                             capture_output=True, text=True, check=True).stdout
        names = [line.split()[-1] for line in out.splitlines()]
        if any("san" in n and n.startswith("__") for n in names):
            self.skipTest("sanitizer build")
        declared = set()
        for path in sources("include"):
            with open(path, encoding="utf-8") as f:
                declared |= set(re.findall(r"\b(theo_\w+)\(", f.read()))
        self.assertGreater(len(names), 30)
        for name in names:
            self.assertIn(name, declared, f"{name} is exported but not in a public header")

    def test_every_declared_function_is_exported(self):
        out = subprocess.run(["nm", "-D", "--defined-only", os.path.join(BUILD, "src", "libtheo.so")],
                             capture_output=True, text=True, check=True).stdout
        names = {line.split()[-1] for line in out.splitlines()}
        for path in sources("include"):
            with open(path, encoding="utf-8") as f:
                text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
            for name in re.findall(r"THEO_API\b[^;]*?\b(theo_\w+)\(", text):
                self.assertIn(name, names, f"{path} declares {name}")

    def test_internal_functions_carry_the_prefix(self):
        out = subprocess.run(["nm", "--defined-only", "-g", os.path.join(BUILD, "src", "libtheo_static.a")],
                             capture_output=True, text=True, check=False)
        if out.returncode:
            self.skipTest("static library not built")
        for line in out.stdout.splitlines():
            parts = line.split()
            if len(parts) == 3 and not parts[2].startswith(("__", "_GLOBAL_", "asan", "odr")):
                self.assertRegex(parts[2], "^theo_", line)

    def test_headers_stand_alone_in_c99_and_cxx(self):
        for compiler, flags, ending in (("cc", ["-std=c99", "-pedantic"], ".c"), ("c++", ["-std=c++11", "-pedantic"], ".cc")):
            if not shutil.which(compiler):
                print(f"{compiler} is absent: not tried")
                continue
            for path in sources("include"):
                with tempfile.TemporaryDirectory() as folder:
                    unit = os.path.join(folder, "unit" + ending)
                    with open(unit, "w", encoding="utf-8") as f:
                        f.write(f"#include <theo/{os.path.basename(path)}>\nint unit;\n")
                    subprocess.run([compiler, *flags, "-Wall", "-Wextra", "-Werror", "-I", os.path.join(SOURCE, "include"),
                                    "-c", unit, "-o", os.path.join(folder, "unit.o")], check=True)

    def test_nothing_speaks_of_a_machine(self):
        listing = subprocess.run(["git", "-C", SOURCE, "ls-files"], capture_output=True, text=True, check=False)
        if listing.returncode:
            self.skipTest("not a git checkout")
        word = re.compile(rb"/(?:root|home|work)/\w")
        for name in listing.stdout.splitlines():
            path = os.path.join(SOURCE, name)
            if not os.path.isfile(path) or os.path.splitext(name)[1] in (".safetensors", ".npy", ".png", ".jpg", ".pt", ".pth", ".npz"):
                continue
            with open(path, "rb") as f:
                self.assertIsNone(word.search(f.read()), f"{name} names a path of one machine")


class Installation(unittest.TestCase):
    """Install into a fresh prefix and build a program against it, by pkg-config and by CMake."""

    PROGRAM = """
#include <stdio.h>
#include <string.h>
#include <theo/theo.h>
int main(void) {
    theo_error err;
    theo_model *model = NULL;
    if (theo_model_open(&model, "superpoint-open", NULL, &err)) { puts(err.message); return 1; }
    theo_model_info info;
    theo_model_get_info(model, &info);
    printf("%s %s\\n", theo_version(), info.name);
    theo_model_close(model);
    return strcmp(info.kind, "superpoint") != 0;
}
"""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.prefix = os.path.join(cls.folder, "prefix")
        subprocess.run(["cmake", "--install", BUILD, "--prefix", cls.prefix], check=True, stdout=subprocess.DEVNULL)
        cls.lib = next(root for root, _, names in os.walk(cls.prefix) if "libtheo.so" in names)
        with open(os.path.join(cls.folder, "program.c"), "w", encoding="utf-8") as f:
            f.write(cls.PROGRAM)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def run_program(self, path):
        env = {k: v for k, v in os.environ.items() if k not in ("THEO_MODELS", "HF_HOME", "HF_HUB_CACHE")}
        env["LD_LIBRARY_PATH"] = self.lib
        done = subprocess.run([path], env=env, cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("superpoint-open", done.stdout)

    def test_pkg_config(self):
        if not shutil.which("pkg-config"):
            self.skipTest("pkg-config is absent")
        env = dict(os.environ, PKG_CONFIG_PATH=os.path.join(self.lib, "pkgconfig"))
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "theo"], env=env, capture_output=True, text=True, check=True).stdout.split()
        out = os.path.join(self.folder, "by-pkg-config")
        subprocess.run(["cc", os.path.join(self.folder, "program.c"), "-o", out, *flags], check=True)
        self.run_program(out)

    def test_cmake_package(self):
        tree = os.path.join(self.folder, "cmake-program")
        os.makedirs(tree)
        with open(os.path.join(tree, "CMakeLists.txt"), "w", encoding="utf-8") as f:
            f.write("cmake_minimum_required(VERSION 3.25)\nproject(p C)\nfind_package(theodolite REQUIRED)\n"
                    "add_executable(p ../program.c)\ntarget_link_libraries(p PRIVATE theodolite::theo)\n")
        subprocess.run(["cmake", "-S", tree, "-B", tree + "/b", "-DCMAKE_PREFIX_PATH=" + self.prefix], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["cmake", "--build", tree + "/b"], check=True, stdout=subprocess.DEVNULL)
        self.run_program(tree + "/b/p")

    def test_the_installed_command_runs(self):
        command = os.path.join(self.prefix, "bin", "theo")
        done = subprocess.run([command, "--version"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
