"""Tests of the kit: python3 -B -m unittest, with ORRERY in the environment. They need nothing but Python."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

from orrery_test_kit import OrreryError, start_orrery

SHOP = pathlib.Path(__file__).parents[1] / "examples" / "shop.json"


def is_running(pid):
    try:
        return "\nState:\tZ" not in pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


class KitTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        os.environ["TMPDIR"] = self.folder.name

    def left(self):
        return os.listdir(self.folder.name)

    def until(self, condition):
        end = time.monotonic() + 20
        while not condition():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)

    def test_a_server_is_started_seeded_and_leaves_nothing(self):
        with start_orrery(seed=SHOP) as orrery:
            self.assertEqual(len(self.left()), 1)
            self.assertEqual(orrery.connection_string, f"AccountEndpoint={orrery.endpoint}/;AccountKey={orrery.key};")
            self.assertIn("Nothing was changed", orrery.seed(SHOP))
            self.assertIn("Nothing was changed", orrery.seed(json.loads(SHOP.read_text())))
            with self.assertRaisesRegex(OrreryError, "did you mean 'id'"):
                orrery.seed({"databases": [{"idd": "x"}]})
        orrery.stop()
        self.assertFalse(is_running(orrery.pid))
        self.assertEqual(self.left(), [])

    def test_what_goes_wrong_says_why(self):
        rows = [
            ({"binary": "/nowhere"}, "cannot start '/nowhere'"),
            ({"seed": "/nowhere.json"}, "No such file"),
            ({"seed": {"databases": [{}]}}, "'id' is missing"),
            ({"args": ["--prot"]}, "did you mean 'port'"),
        ]
        for options, message in rows:
            with self.assertRaisesRegex(OrreryError, message):
                start_orrery(**options)
        self.until(lambda: self.left() == [])

    def test_a_server_ends_with_the_process_that_is_killed(self):
        code = "import time, orrery_test_kit as kit\nprint(kit.start_orrery().pid, flush=True)\ntime.sleep(60)"
        child = subprocess.Popen([sys.executable, "-B", "-c", code], stdout=subprocess.PIPE, text=True)
        pid = int(child.stdout.readline())
        self.assertTrue(is_running(pid))
        child.kill()
        child.wait()
        child.stdout.close()
        self.until(lambda: not is_running(pid) and self.left() == [])

    def test_a_database_is_saved_and_taken_back(self):
        with start_orrery(seed=SHOP) as orrery:
            try:
                orrery.snapshots()
            except OrreryError as error:
                if ": 404 " not in str(error):
                    raise
                self.skipTest("this server has no snapshots")
            orrery.snapshot("shop")
            more = json.loads(SHOP.read_text())
            more["databases"][0]["containers"][0]["items"].append({"id": "3", "customer": "eve"})
            self.assertIn("Items: 1 written", orrery.seed(more))
            orrery.restore("shop")
            self.assertIn("Items: 1 written", orrery.seed(more))
            orrery.drop_snapshot("shop")
            with self.assertRaisesRegex(OrreryError, " 404 "):
                orrery.restore("shop")


if __name__ == "__main__":
    unittest.main()
