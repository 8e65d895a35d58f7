"""The links, and the jobs that each system does over each."""

from dataclasses import dataclass

# Milliseconds beyond the delay of the path within which a datagram of a game, or a frame, is on time.
GAME_SLACK, VIDEO_SLACK = 75, 175
DOWNLOAD_WITHIN = 30.0


@dataclass(frozen=True)
class Link:
    """A path, the same in both directions, as `sutura link` takes it."""

    name: str
    profile: str
    one_way_ms: float
    mbit: float

    def packets(self, size: int) -> float:
        """How many packets of so many bytes are under way in a round trip, both ways together."""
        return self.mbit * 1e6 / 8 * 2 * self.one_way_ms / 1e3 / size

    def drain(self) -> float:
        """Seconds after the last message until what is missing counts as lost."""
        return 3 + 14 * self.one_way_ms / 1e3


LINKS = [
    Link("random 1 %", "rate=20mbit queue=100p delay=25ms loss=bern:0.01", 25, 20),
    Link("random 5 %", "rate=20mbit queue=100p delay=25ms loss=bern:0.05", 25, 20),
    Link("bursts", "rate=20mbit queue=100p delay=25ms loss=gt:300,4.8,0.95,0.005", 25, 20),
    Link("satellite", "rate=10mbit queue=500p delay=300ms loss=bern:0.01", 300, 10),
]
# No emulator: what is measured there is what the programs themselves cost.
WIRE = Link("no loss", "", 0, 1000)


@dataclass(frozen=True)
class Length:
    """How much of each job is done."""

    # Seconds of streams; a typed session takes twice as many.
    seconds: float
    download: int
    bulk: int
    pages: int


FULL = Length(12, 20_000_000, 256 << 20, 3)
QUICK = Length(3, 2_000_000, 16 << 20, 1)


@dataclass(frozen=True)
class Job:
    name: str
    title: str
    text: str
    # What it needs of a system: "tcp", "udp" or "page".
    needs: str
    # The figures of the report, names of tunnel_report.METRICS.
    metrics: tuple[str, ...]


TYPED = Job(
    "typed",
    "A typed session",
    "A key about every 120 ms (between 80 and 160), one byte up and 60 bytes back over one TCP connection: the time from "
    "when the key was to be struck until its last byte is back.",
    "tcp",
    ("p50", "p99", "longest", "missing", "wire", "cpu"),
)
GAME = Job(
    "game",
    "A game",
    "60 datagrams a second of 200 bytes each way: the delay one way of those in both directions. Late is what comes more "
    f"than {GAME_SLACK} ms after the path's own delay, which is 100 ms after it was sent except by satellite.",
    "udp",
    ("late", "lost", "p50 came", "p99 came", "wire", "cpu"),
)
VIDEO = Job(
    "video",
    "Video",
    "30 frames a second of 14 datagrams of 1,200 bytes to the client, 4 Mbit/s, each frame at once. A frame is complete "
    f"with its last datagram; on time is within {VIDEO_SLACK} ms after the path's own delay, which is 200 ms except by "
    "satellite.",
    "udp",
    ("on time", "incomplete", "p50 came", "p99 came", "wire", "cpu"),
)
DOWNLOAD = Job(
    "download",
    "A download",
    f"20 MB over one TCP connection, or as much of it as comes within {DOWNLOAD_WITHIN:.0f} s.",
    "tcp",
    ("goodput", "cost", "cpu"),
)
PAGE = Job(
    "page",
    "A page in Chromium",
    "Twelve files of 1.3 MB over HTTP/1.1, through SOCKS or the system's own network device, without a cache: the time "
    "until the page says that it is loaded.",
    "page",
    ("middle", "longest", "wire load", "cpu load"),
)
JOBS = [TYPED, GAME, VIDEO, DOWNLOAD, PAGE]
BULK = Job("bulk", "A bulk transfer", "A download of 256 MiB.", "bulk", ("goodput", "cpu near", "cpu far", "cpu both"))
WIRE_TYPED = Job("typed", TYPED.title, "The same session as over the links.", "tcp", ("p50", "p99", "added"))
WIRE_JOBS = [WIRE_TYPED, BULK]


def stream(per_second: float, seconds: float, datagrams: int, size: int) -> dict:
    return {"interval_us": round(1e6 / per_second), "count": round(per_second * seconds), "datagrams": datagrams, "bytes": size}


def request(job: Job, link: Link, length: Length, seed: int) -> dict:
    """What traffic.py is told."""
    common = {"drain_s": link.drain()}
    match job.name:
        case "typed":
            return common | {"interval_us": 120_000, "count": round(2 * length.seconds / 0.12), "bytes": 60, "seed": seed}
        case "game":
            flow = stream(60, length.seconds, 1, 200)
            return common | {"up": flow, "down": flow}
        case "video":
            return common | {"down": stream(30, length.seconds, 14, 1200)}
        case "download":
            return {"bytes": length.download, "within_s": DOWNLOAD_WITHIN}
        case "bulk":
            return {"bytes": length.bulk, "within_s": 4 * DOWNLOAD_WITHIN}
        case "page":
            return {"loads": length.pages, "within_s": 2 * DOWNLOAD_WITHIN}
        case other:
            raise ValueError(other)


def limit_ms(job: str, link: Link) -> float:
    """Milliseconds within which a message of a game or of video is on time."""
    return link.one_way_ms + {"game": GAME_SLACK, "video": VIDEO_SLACK}[job]
