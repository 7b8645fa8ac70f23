"""The `meta.properties` file: whose data directory this is.

    #
    cluster.id=MkU3OEVBNTcwNTJENDM2Qg
    directory.id=9p2Wl1tXSSCgDZ1NvHvHkA
    node.id=1
    version=1

`storage format` writes it once, synced; it never changes. If it is missing the directory has not been formatted. If it does
not parse the broker does not start, for it must not guess whose data this is.

Source: Kafka's `MetaProperties`, `PropertiesUtils`; KIP-631, KIP-858.
"""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.log.disk import Disk
from barnabas.words.printable import printable

META_PROPERTIES = "meta.properties"
VERSION = 1


class InvalidMetaProperties(ValueError):
    """The file exists but is not valid."""


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """The identity of a data directory; ids in Kafka's base64 form."""

    cluster_id: str
    node_id: int
    directory_id: str | None = None

    def encode(self) -> bytes:
        lines = ["#", f"cluster.id={self.cluster_id}"]
        if self.directory_id is not None:
            lines.append(f"directory.id={self.directory_id}")
        lines += [f"node.id={self.node_id}", f"version={VERSION}", ""]
        return "\n".join(lines).encode()

    @classmethod
    def decode(cls, data: bytes) -> MetaProperties:
        """Read the file's content.

        Raises:
            InvalidMetaProperties: a field is missing or malformed, or the version is unknown.
        """
        try:
            lines = data.decode().splitlines()
        except UnicodeDecodeError as error:
            raise InvalidMetaProperties(f"{META_PROPERTIES} is not text") from error
        fields: dict[str, str] = {}
        for line in lines:
            if line.strip() and not line.startswith(("#", "!")):
                name, _, value = line.partition("=")
                # Java's writer escapes these two in values.
                fields[name.strip()] = value.strip().replace("\\:", ":").replace("\\=", "=")
        version = fields.get("version", "")
        if version not in ("0", "1"):
            found = f"version {printable(version)}" if version else "no version"
            raise InvalidMetaProperties(f"{META_PROPERTIES} has {found}, and this release reads versions 0 and 1")
        node_id = fields.get("node.id", fields.get("broker.id", ""))
        if not node_id.isdecimal():
            raise InvalidMetaProperties(f"{META_PROPERTIES} has no valid node.id")
        if not fields.get("cluster.id"):
            raise InvalidMetaProperties(f"{META_PROPERTIES} has no cluster.id")
        return cls(fields["cluster.id"], int(node_id), fields.get("directory.id"))


def read(disk: Disk, root_dir: str) -> MetaProperties | None:
    """Return the identity of a directory, None if it has not been formatted.

    Raises:
        InvalidMetaProperties: the file exists but is not valid.
    """
    try:
        return MetaProperties.decode(disk.read_file(f"{root_dir}/{META_PROPERTIES}"))
    except FileNotFoundError:
        return None


def write(disk: Disk, root_dir: str, meta: MetaProperties) -> None:
    disk.write_file_atomic(f"{root_dir}/{META_PROPERTIES}", meta.encode())
