"""The address and the interface by which this machine reaches the others of a run."""

import fcntl
import socket
import struct
from contextlib import suppress

# of Linux: the first address of an interface
SIOCGIFADDR = 0x8915
# set aside for examples: nobody is there, but whatever leads out of this machine leads there
OUTSIDE = "192.0.2.1"


def own_address(coordinator: str) -> str | None:
    """This machine's address towards the coordinator of a run; a loopback address only where that has one.

    On some systems a machine's own name leads to its loopback address, which the others cannot reach.
    """
    alone = coordinator == "localhost" or is_loopback(coordinator)
    found = [address for to in (coordinator, OUTSIDE) if (address := _source(to))]
    return next((address for address in found if alone or not is_loopback(address)), None)


def interface_of(address: str) -> str | None:
    """The name of the interface that has an address; None where it has none, or the system does not say."""
    for _, name in socket.if_nameindex():
        with socket.socket(type=socket.SOCK_DGRAM) as s, suppress(OSError):
            answer = fcntl.ioctl(s, SIOCGIFADDR, struct.pack("256s", name.encode()))
            if socket.inet_ntoa(answer[20:24]) == address:
                return name
    return None


def is_loopback(address: str) -> bool:
    return address.startswith("127.")


def _source(to: str) -> str | None:
    with socket.socket(type=socket.SOCK_DGRAM) as s, suppress(OSError):
        s.connect((to, 9))  # sends nothing
        return s.getsockname()[0]
    return None
