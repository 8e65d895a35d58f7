"""Whether check_priorities.py tells right from wrong, with traces made up for it."""

import unittest

from check_priorities import MOST_AHEAD, Trace, complaints, order
from priority_field import Malformed, Priority, parse

PACKET = 1200


class Server:
    """Makes the events of a server."""

    def __init__(self) -> None:
        limit = {"owner": "remote", "initial_max_stream_data_bidi_local": 10**6}
        self.events = [{"name": "transport:parameters_set", "data": limit}]
        self.sent: dict[int, int] = {}

    def event(self, name: str, **data) -> None:
        self.events.append({"time": float(len(self.events)), "name": name, "data": data})

    def request(self, stream: int, priority: str | None, packets: int = 20) -> None:
        headers = [{"name": ":path", "value": f"/{stream}"}]
        if priority is not None:
            headers.append({"name": "priority", "value": priority})
        frame = {"frame_type": "headers", "headers": headers}
        self.event("http:frame_parsed", stream_id=stream, frame=frame)
        self.write(stream, packets * PACKET)

    def write(self, stream: int, length: int) -> None:
        ends = {"from": "application", "to": "transport"}
        self.event("transport:data_moved", stream_id=stream, length=length, **ends)

    def update(self, stream: int, priority: str) -> None:
        frame = {"frame_type": "priority_update", "element_id": stream, "value": priority}
        self.event("http:frame_parsed", stream_id=2, frame=frame)

    def send(self, stream: int, packets: int = 20, fin: bool = True) -> None:
        for left in reversed(range(packets)):
            at = self.sent.get(stream, 0)
            self.sent[stream] = at + PACKET
            self.packet(stream, at, fin and left == 0)

    def packet(self, stream: int, offset: int, fin: bool = False) -> None:
        place = {"stream_id": stream, "offset": offset, "length": PACKET, "fin": fin}
        self.event("transport:packet_sent", frames=[{"frame_type": "stream"} | place])

    def receive(self, **frame) -> None:
        self.event("transport:packet_received", frames=[frame])

    def found(self, *expected: str, responses: int | None = None) -> list[str]:
        return complaints([Trace(self.events)], list(expected), responses)


def server(*priorities: str | None) -> Server:
    """Requests of these priorities have come, and their responses wait."""
    made = Server()
    for index, priority in enumerate(priorities):
        made.request(4 * index, priority)
    return made


class Urgency(unittest.TestCase):
    def test_the_more_urgent_goes_first(self) -> None:
        made = server("u=5", "u=1")
        made.send(4)
        made.send(0)
        self.assertEqual(made.found("urgency", responses=2), [])

    def test_one_packet_at_the_wrong_time_is_found(self) -> None:
        made = server("u=5", "u=1")
        made.send(4, 10, fin=False)
        made.send(0, 1, fin=False)
        made.send(4, 10)
        made.send(0, 19)
        wrong = ["urgency: 1200 bytes of /0 (u=5) while /4 (u=1) waited"]
        self.assertEqual(made.found("urgency"), wrong)

    def test_what_was_sent_before_the_request_came_is_right(self) -> None:
        made = server("u=5")
        made.send(0, 10, fin=False)
        made.request(4, "u=1", packets=10)
        made.send(4, 10)
        made.write(4, 10 * PACKET)
        made.send(4, 10)
        made.send(0, 10)
        self.assertEqual(made.found("urgency"), [])

    def test_while_nothing_was_handed_over_others_may_send(self) -> None:
        made = server("u=5")
        made.request(4, "u=1", packets=0)
        made.send(0)
        made.write(4, 20 * PACKET)
        made.send(4)
        self.assertEqual(made.found(), [])

    def test_what_the_client_gives_no_credit_for_does_not_wait(self) -> None:
        made = server("u=5")
        made.request(4, "u=1", packets=1000)
        made.send(4, 834, fin=False)  # a packet beyond the limit of 10^6
        made.send(0, 10, fin=False)
        made.receive(frame_type="max_stream_data", stream_id=4, maximum=10**7)
        self.assertEqual([c for c in made.found() if "urgency" in c], [])
        made.send(0, 1, fin=False)
        self.assertEqual(len([c for c in made.found() if "urgency" in c]), 1)

    def test_data_sent_again_may_go_before_or_after(self) -> None:
        made = server("u=5")
        made.send(0, 2, fin=False)
        made.request(4, "u=1")
        made.packet(0, PACKET)
        made.send(4)
        made.send(0, 18)
        self.assertEqual(made.found("urgency"), [])

    def test_abandoned_responses_do_not_wait(self) -> None:
        made = server("u=5", "u=1")
        made.receive(frame_type="stop_sending", stream_id=4, error_code=0)
        made.send(0)
        self.assertEqual(made.found(), [])


class Updates(unittest.TestCase):
    def test_count_from_when_they_come(self) -> None:
        made = server("u=5", "u=3")
        made.send(4, 10, fin=False)
        made.update(0, "u=1")
        made.send(0)
        made.send(4, 10)
        self.assertEqual(made.found("urgency"), [])

    def test_that_are_not_heeded_are_found(self) -> None:
        made = server("u=5", "u=3")
        made.send(4, 10, fin=False)
        made.update(0, "u=1")
        made.send(4, 10)
        made.send(0)
        wrong = ["urgency: 12000 bytes of /4 (u=3) while /0 (u=1) waited"]
        self.assertEqual(made.found("urgency"), wrong)

    def test_before_the_request_win_over_its_field(self) -> None:
        made = server("u=3")
        made.update(4, "u=1")
        made.request(4, "u=7")
        made.send(0)
        made.send(4)
        self.assertEqual(len(made.found("urgency")), 1)

    def test_replace_all_of_the_field(self) -> None:
        made = server("u=1, i")
        made.update(0, "")
        trace = Trace(made.events)
        self.assertEqual(trace.responses[0].priority, Priority())


class Order(unittest.TestCase):
    def test_of_the_requests(self) -> None:
        made = server(None, "", "u=3")
        for stream in (0, 4, 8):
            made.send(stream)
        self.assertEqual(made.found("order", responses=3), [])

    def test_taking_turns_is_found(self) -> None:
        made = server(None, None)
        for _ in range(20):
            made.send(0, 1)
            made.send(4, 1)
        self.assertEqual(made.found("order")[0].split(":")[0], "order")


class Sharing(unittest.TestCase):
    def test_in_turns(self) -> None:
        made = server("i", "i", "i")
        for _ in range(20):
            for stream in (0, 4, 8):
                made.send(stream, 1)
        self.assertEqual(made.found("sharing"), [])

    def test_one_by_one_is_found(self) -> None:
        made = server("i", "i")
        made.send(0)
        made.send(4)
        self.assertEqual(made.found("sharing")[0].split(":")[0], "sharing")

    def test_begins_anew_when_another_comes(self) -> None:
        made = server("i")
        made.send(0, 15, fin=False)
        made.request(4, "i")
        for _ in range(5):
            made.send(0, 1, fin=False)
            made.send(4, 1, fin=False)
        made.send(4, 15)
        made.sent[0] = 20 * PACKET
        self.assertEqual([c for c in made.found() if "sharing" in c], [])
        self.assertGreater(15 * PACKET, MOST_AHEAD)

    def test_of_different_urgencies_is_none(self) -> None:
        made = server("u=1, i", "u=2, i")
        made.send(0)
        made.send(4)
        self.assertEqual(made.found("urgency"), [])


class Evidence(unittest.TestCase):
    def test_is_needed(self) -> None:
        made = server("u=1")
        made.send(0)
        self.assertEqual(made.found("urgency"), ["urgency: only 0 bytes say anything about it"])

    def test_responses_are_counted(self) -> None:
        made = server("u=1")
        made.send(0)
        self.assertEqual(made.found(responses=2), ["1 responses instead of 2"])

    def test_responses_must_be_finished(self) -> None:
        made = server("u=1")
        made.send(0, 3, fin=False)
        self.assertEqual(made.found(), ["/0 (u=1) was not finished"])

    def test_order_is_that_of_completion(self) -> None:
        made = server("u=5", "u=1")
        made.send(4)
        made.send(0)
        self.assertEqual(order([Trace(made.events)]), ["/4", "/0"])


class Fields(unittest.TestCase):
    def test_what_is_known_counts(self) -> None:
        self.assertEqual(parse(""), Priority(3, False))
        self.assertEqual(parse("u=1, i"), Priority(1, True))
        self.assertEqual(parse("i=?0,\tu=7"), Priority(7, False))
        self.assertEqual(parse("u=1, i, u=2, i=?0"), Priority(2, False))

    def test_what_is_not_changes_nothing(self) -> None:
        values = [
            "u=1, i, x=7",
            'u=1;foo=bar, a=("b" c;d=1 2.5 );e, i;zz',
            "u=1, b=:AQ==:, d=@17, s=%\"a%c3\", t=a/b:c, i=?1",
            'exp_q="u=5", u=1, i, *k=-12',
        ]
        for value in values:
            self.assertEqual(parse(value), Priority(1, True), value)

    def test_what_is_out_of_range_or_of_another_type_is_the_default(self) -> None:
        for value in ("u=8, i", "u=-1, i", "u=1.0, i", 'u="1", i', "u, i", "u=(1), i"):
            self.assertEqual(parse(value), Priority(3, True), value)
        self.assertEqual(parse("u=1, i=1"), Priority(1, False))

    def test_what_is_no_dictionary_is_malformed(self) -> None:
        for value in ("u=", "u=1,", "u=1 i", "U=1", ",", "u=(1", 'u="', "u=1.", "u=;", "i=?2"):
            with self.assertRaises(Malformed, msg=value):
                parse(value)


if __name__ == "__main__":
    unittest.main()
