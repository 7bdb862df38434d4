"""The man page and the completion against the options of the program."""
import os
import re
import shutil
import subprocess

from harness import SOURCE, THEO, CliTest, command_names, environment, main, option_table

MAN, COMPLETION = (os.path.join(SOURCE, "cli", name) for name in ("theo.1", "theo.bash"))


def man_options():
    """Options of the page by subsection: {"theo keypoints": {"--dump": ("FILE", text)}}."""
    sections, current, option = {}, None, None
    with open(MAN) as f:
        for line in f.read().splitlines():
            if line.startswith((".Sh", ".Ss")):
                current = sections.setdefault(line[4:], {})
                option = None
            item = re.match(r"\.It (?:Fl (\w) , )?Fl Fl ([a-z0-9-]+)(?: Ar (\S+))?$", line)
            if item:
                option = "--" + item[2]
                current[option] = [item[3] or "", item[1] or "-", ""]
            elif option:
                current[option][2] += line + " "
    return sections


class Man(CliTest):
    def test_page_and_program_have_the_same_options(self):
        sections = man_options()
        shared = {}
        for name, options in sections.items():
            if name.endswith("options"):
                shared.update(options)
        shared.update(sections["theo help"])
        seen = set()
        for command in command_names():
            own = sections[f"theo {command}"]
            table = {row["name"]: row for row in option_table(command)}
            for name in own:
                self.assertIn(name, table, f"the page gives {command} the option {name}")
            for name, row in table.items():
                item = own.get(name, shared.get(name))
                self.assertIsNotNone(item, f"the page lacks {name} of {command}")
                self.assertEqual((item[0], item[1]), (row["value"], row["letter"]), f"{command} {name}")
                self.assertEqual(f"efault: {row['initial']}." in item[2], bool(row["initial"]), f"{command} {name}: {item[2]}")
                seen.add(name)
        self.assertEqual({name for options in sections.values() for name in options}, seen)

    def test_page_has_every_command(self):
        with open(MAN) as f:
            text = f.read()
        for command in [*command_names(), "help"]:
            self.assertIn(f".Cm {command}\n", text)

    def test_page_is_clean(self):
        if not shutil.which("mandoc"):
            self.skipTest("mandoc is not here")
        r = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", MAN], stdout=subprocess.PIPE)
        self.assertEqual((r.returncode, r.stdout), (0, b""))

    def complete(self, *words):
        """What the completion offers for the last word."""
        script = (f"compopt() {{ :; }}; source '{COMPLETION}'; COMP_WORDS=(\"$@\"); COMP_CWORD=$(( $# - 1 )); "
                  "_theo; printf '%s\\n' \"${COMPREPLY[@]}\"")
        r = subprocess.run(["bash", "-c", script, "bash", THEO, *words], capture_output=True, cwd=self.dir, env=environment())
        self.assertEqual(r.stderr, b"")
        return [word for word in r.stdout.decode().split("\n") if word]

    def test_completion(self):
        self.image("photo.png")
        os.mkdir(self.path("folder"))
        self.assertEqual(set(self.complete("")), set(command_names()) | {"help", "--version"})
        self.assertEqual(self.complete("key"), ["keypoints"])
        self.assertEqual(set(self.complete("help", "m")), {"match", "models"})
        for command in command_names():
            self.assertEqual(set(self.complete(command, "--")), {row["name"] for row in option_table(command)})
        self.assertEqual(self.complete("keypoints", "--nms", ""), ["iterative", "single", "greedy"])
        self.assertEqual(self.complete("keypoints", "--nms", "=", "g"), ["greedy"])
        self.assertEqual(self.complete("keypoints", "-o", ""), ["folder"])
        self.assertEqual(set(self.complete("keypoints", "")), {"photo.png", "folder"})
        self.assertEqual(self.complete("keypoints", "--json", "pho"), ["photo.png"])
        self.assertEqual(self.complete("keypoints", "--threads", ""), [])


if __name__ == "__main__":
    main()
