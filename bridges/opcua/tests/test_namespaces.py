"""What the field driver promises of namespaces by their URI (spec/field-driver.md, J-48), held with real pairs against a
server that shares no code with it."""

import unittest

from pair_on_loopback import NODES
from test_field import Site

SPACE = "urn:test:100%;furnace"
WRITTEN = "nsu=urn:test:100%25%3Bfurnace"
SERVER = ("--space", SPACE)


class Namespaces(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.site = Site('policy = "None"', space=WRITTEN)
        self.addCleanup(self.site.end)

    def spaces(self):
        return {it["space"] for it in self.site.events("server") if it["event"] == "write"}

    async def test_another_number_after_a_reconnection_leads_to_the_same_values(self):
        await self.site.start_all(*SERVER)
        await self.site.roles()
        await self.site.more(10)
        for before in (["urn:test:other"], ["urn:test:third", "urn:test:other"], []):
            # What had the number before has the same identifiers.
            options = [it for space in before for it in ("--before", space)]
            await self.site.serve(*SERVER, *options)
            await self.site.more(10)
            for node in NODES:
                await self.site.answers(node)
            self.assertEqual(self.site.inputs("left")["level"], 10)
        self.assertEqual(self.spaces(), {SPACE})

    async def test_a_uri_that_the_server_does_not_have_is_told_with_those_that_it_has(self):
        await self.site.start_all("--space", "urn:test:elsewhere")
        for node in NODES:
            await self.site.says(node, "furnace", f"{WRITTEN};s=level", f"{WRITTEN};s=count", "urn:test:elsewhere",
                                 "correct the URI")
        self.assertEqual(self.site.counts(), [])
        await self.site.serve(*SERVER)
        await self.site.more()
        self.assertEqual(self.spaces(), {SPACE})


if __name__ == "__main__":
    unittest.main(verbosity=2)
