"""A host application as Sparkplug 3.0 describes it, which believes nothing that does not follow from a birth."""

import threading

import paho.mqtt.client as mqtt
from payload import BOOLEAN, DOUBLE, STRING, STRING_ARRAY, UINT64, payload

TYPES = {bool: BOOLEAN, str: STRING, list: STRING_ARRAY, float: DOUBLE, int: UINT64}


class Edge:
    """An edge node."""

    def __init__(self):
        self.alive = False
        self.bd_seq = None
        self.seq = None
        self.births = 0
        self.metrics = {}
        self.devices = {}
        self.deaths = 0


class Host:
    def __init__(self, address, port, group):
        self.group = group
        self.lock = threading.Lock()
        self.edges = {}
        # What is not as the specification has it.
        self.wrong = []
        self.client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id="host")
        self.client.on_message = self.on_message
        self.client.on_connect = lambda client, *_: client.subscribe(f"spBv1.0/{group}/#", qos=1)
        self.client.connect(address, port)
        self.client.loop_start()

    def end(self):
        self.client.disconnect()
        self.client.loop_stop()

    def on_message(self, _client, _user, message):
        with self.lock:
            try:
                self.take(message)
            except Exception as error:
                self.wrong.append(f"{message.topic}: {error!r}")

    def take(self, message):
        space, group, kind, node, *device = message.topic.split("/")
        if kind in ("NCMD", "DCMD"):
            return
        assert (space, group) == ("spBv1.0", self.group)
        assert not message.retain
        edge = self.edges.setdefault(node, Edge())
        timestamp, seq, metrics = payload(message.payload)
        names = [name for name, _, _ in metrics]
        assert len(set(names)) == len(names), "a name comes once"
        values = {name: value for name, _, value in metrics}
        if kind == "NDEATH":
            assert values["bdSeq"] == edge.bd_seq, "the will is that of the birth"
            edge.alive, edge.metrics, edge.devices = False, {}, {}
            edge.deaths += 1
            return
        assert timestamp and seq is not None
        if kind == "NBIRTH":
            assert seq == 0
            assert values["Node Control/Rebirth"] is False
            if edge.bd_seq is not None and not edge.alive:
                assert values["bdSeq"] == (edge.bd_seq + 1) % 256, (edge.bd_seq, values["bdSeq"])
            edge.alive, edge.bd_seq, edge.seq, edge.devices = True, values["bdSeq"], 0, {}
            edge.births += 1
            edge.metrics = self.born(metrics)
            return
        assert edge.alive, "nothing comes before a birth"
        assert seq == (edge.seq + 1) % 256, f"{seq} follows {edge.seq}"
        edge.seq = seq
        if kind == "NDATA":
            self.changed(edge.metrics, values)
        elif kind == "DBIRTH":
            edge.devices[device[0]] = self.born(metrics)
        elif kind == "DDATA":
            self.changed(edge.devices[device[0]], values)
        elif kind == "DDEATH":
            del edge.devices[device[0]]
        else:
            raise AssertionError(kind)

    @staticmethod
    def born(metrics):
        for name, kind, value in metrics:
            if name not in ("bdSeq", "Node Control/Rebirth"):
                assert TYPES[type(value)] == kind, (name, kind, value)
        return {name: value for name, _, value in metrics}

    @staticmethod
    def changed(known, values):
        for name, value in values.items():
            assert name in known, f"{name} was not born"
            assert isinstance(value, type(known[name])), name
        known.update(values)

    def seen(self, look):
        """What `look` gives of the edge nodes; nothing may have been wrong by then."""
        with self.lock:
            assert not self.wrong, self.wrong
            return look(self.edges)
