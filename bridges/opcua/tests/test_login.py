"""What the field driver promises of users and their passwords (spec/field-driver.md, J-46 and J-47), held with real pairs
against a server that shares no code with it."""

import json
import os
import subprocess
import unittest
from pathlib import Path

from pair_on_loopback import BUMPLESS, NODES, until
from test_field import Site

USER = "PLANT\\operator"
PASSWORD = "correct horse süß"
LOGIN = f"user = '{USER}'\npassword_file = \"furnace.password\"\n"
EXPOSED = 'policy = "None"\npassword_exposed = true\n'


def site(test, security, password=PASSWORD, login=LOGIN):
    site = Site(login + security)
    test.addCleanup(site.end)
    if password is not None:
        give(site, password)
    return site


def give(site, password):
    path = site.folder / "furnace.password"
    path.touch(mode=0o600)
    path.write_text(f"{password}\n")


class Protected(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.site = site(self, 'files = "opcua"')
        await self.site.certificates()

    async def test_both_nodes_log_in_and_the_password_stays_in_its_file(self):
        await self.site.start_all(self.site.server_files, "--login", USER, PASSWORD)
        await self.site.more(10)
        for node in NODES:
            self.assertEqual((await self.site.answers(node))["user"], USER)
        self.assertEqual({it["user"] for it in self.site.told("login")}, {USER})
        shown = [json.dumps(self.site.status(node), ensure_ascii=False) for node in NODES]
        shown += [self.site.run(BUMPLESS, "status", self.site.folder / "pair.toml", "--node", node) for node in NODES]
        shown += [self.site.run(BUMPLESS, "check", self.site.folder / "pair.toml")]
        self.assertNotIn("password", " ".join(self.site.status("left")["weaknesses"]))
        files = [it for it in self.site.folder.rglob("*") if it.is_file() and it.name != "furnace.password"]
        self.assertIn("left.log", [it.name for it in files])
        shown += [it.read_text(errors="replace") for it in files]
        for node in NODES:
            shown += [Path(f"/proc/{self.site.processes[node].pid}/environ").read_text(errors="replace")]
            driver = Path(f"/proc/{self.site.device(node)['driver']['pid']}")
            shown += [(driver / "cmdline").read_text(errors="replace")]
            # Without root, nobody looks into a process that knows a password.
            if os.geteuid() != 0:
                with self.assertRaises(PermissionError):
                    (driver / "environ").read_bytes()
        for text in shown:
            self.assertNotIn(PASSWORD, text)

    async def test_a_wrong_password_is_named_and_a_right_one_taken_without_another_driver(self):
        give(self.site, "wrong")
        await self.site.start_all(self.site.server_files, "--login", USER, PASSWORD)
        for node in NODES:
            told = await self.site.says(node, "furnace", "it refuses the user", "operator", "BadUserAccessDenied",
                                        "furnace.password", "check the name")
            self.assertNotIn("wrong", told)
        before = self.site.device("left")["driver"]
        self.assertEqual((before["starts"], before["failures"]), (1, 0))
        give(self.site, PASSWORD)
        await self.site.more()
        for node in NODES:
            await self.site.answers(node)
        after = self.site.device("left")["driver"]
        self.assertEqual((after["pid"], after["starts"]), (before["pid"], 1))

        async def told_no_more():
            return not any("refuses" in it for it in self.site.status("left")["weaknesses"])
        await until("nothing is said of the user", told_no_more)

    async def test_what_is_wrong_with_the_file_is_said_by_check_and_status(self):
        path = self.site.folder / "furnace.password"
        path.chmod(0o640)
        checked = json.loads(self.site.run(BUMPLESS, "check", "--json", self.site.folder / "pair.toml"))
        problem = checked["password_problems"][0]
        self.assertIn("mode 640", problem["wrong"])
        self.assertIn("furnace", problem["device"])
        await self.site.start_all(self.site.server_files, "--login", USER, PASSWORD)
        await self.site.says("left", "it refuses", "furnace", "furnace.password", "mode 640", "chmod 600")
        path.chmod(0o600)
        await self.site.more()

    async def test_a_file_that_is_gone_is_said_when_the_server_comes_back(self):
        await self.site.start_all(self.site.server_files, "--login", USER, PASSWORD)
        await self.site.more()
        (self.site.folder / "furnace.password").unlink()
        await self.site.serve(self.site.server_files, "--login", USER, PASSWORD)
        await self.site.says("left", "furnace", "furnace.password is not there", "install -m 600")
        give(self.site, PASSWORD)
        await self.site.more()


class Rights(unittest.IsolatedAsyncioTestCase):
    async def test_a_server_without_anonymous_users_says_what_to_give(self):
        without = site(self, 'policy = "None"', password=None, login="")
        await without.start_all("--login", USER, PASSWORD)
        await without.says("left", "furnace", "takes no anonymous users", "password_file")
        self.assertEqual(without.counts(), [])

    async def test_a_value_that_the_user_may_not_read_or_write_is_named(self):
        exposed = site(self, EXPOSED)
        await exposed.start_all("--login", USER, PASSWORD, "--one-write")
        await exposed.more()
        primary, _ = await exposed.roles()
        await exposed.set("10.0 BadUserAccessDenied")
        await exposed.says(primary, "furnace", "does not let the user", "operator", "read", "s=level")
        await exposed.set("10.0 Good")
        for name in ("echo", "count"):
            await exposed.set(f"deny {name}")
            await exposed.says(primary, "furnace", "does not let the user", "operator", "write", f"s={name}",
                               "BadUserAccessDenied", "give that right")
        self.assertNotIn("s=level", " ".join(exposed.status(primary)["weaknesses"]))


class Exposed(unittest.IsolatedAsyncioTestCase):
    async def test_a_password_goes_unprotected_in_so_many_words_alone(self):
        refused = site(self, 'policy = "None"')
        done = subprocess.run([BUMPLESS, "check", refused.folder / "pair.toml"], capture_output=True, text=True,
                              timeout=60)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("password_exposed = true", done.stdout + done.stderr)

    async def test_an_exposed_password_is_a_weakness_and_sent_as_well_as_the_server_permits(self):
        exposed = site(self, EXPOSED)
        await exposed.certificates()
        for options, cipher in [((), None),
                                ((exposed.server_files, "--open"), "http://www.w3.org/2001/04/xmlenc#rsa-oaep")]:
            before = len(exposed.told("login"))
            start = exposed.serve if before else exposed.start_all
            await start(*options, "--login", USER, PASSWORD)
            await exposed.more()
            ciphers = {it["cipher"] for it in exposed.told("login")[before:]}
            self.assertEqual(ciphers, {cipher})
            await exposed.says("left", "furnace", "password_exposed", "may learn the password", "operator")
        self.assertIn("may learn the password", exposed.run(BUMPLESS, "check", exposed.folder / "pair.toml"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
