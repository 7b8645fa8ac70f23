"""Changes of access control lists: what the controller writes. `tests/api/test_acls` has the answers of a node."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.metadata.acl_control import create_acls, delete_acls
from barnabas.metadata.features_image import FeaturesImage
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.security_images import AclsImage
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import CreateAclsRequest, DeleteAclsRequest, RemoveAccessControlEntryRecord
from barnabas.security.acls import AclBinding

RULE = AclBinding(2, "orders", 3, "User:alice", "*", 3, 3)
PREFIXED = RULE._replace(resource_name="ord", pattern_type=4, host="10.0.0.0/8")


def creation_of(*acls: AclBinding) -> CreateAclsRequest:
    creations = []
    for acl in acls:
        values = acl._asdict()
        values["resource_pattern_type"] = values.pop("pattern_type")
        creations.append(CreateAclsRequest.AclCreation(**values))
    return CreateAclsRequest(creations=creations)


@pytest.mark.parametrize(("level", "takes"), [(31, False), (32, True)])
def test_ranges_need_a_metadata_version_that_knows_them(level: int, takes: bool) -> None:
    image = MetadataImage()._replace(features=FeaturesImage(metadata_version=level))
    view: Any = SimpleNamespace(image=image, new_uuid=lambda: b"i" * 16)
    result = create_acls(view, creation_of(PREFIXED, RULE))
    why = "CIDR-based ACL host patterns require metadata version 4.4-IV1 or higher."
    assert [(each.error_code, each.error_message) for each in result.response.results] == [
        (0, None) if takes else (ErrorCode.UNSUPPORTED_VERSION, why),
        (0, None),
    ]
    assert len(result.records) == (2 if takes else 1)


def test_an_acl_that_two_filters_select_is_removed_once() -> None:
    entries = {b"a" * 16: RULE, b"b" * 16: PREFIXED}
    view: Any = SimpleNamespace(image=MetadataImage()._replace(acls=AclsImage(entries)))
    wanted = DeleteAclsRequest.DeleteAclsFilter(
        resource_type_filter=1, resource_name_filter="orders", pattern_type_filter=2,
        principal_filter=None, host_filter=None, operation=1, permission_type=1,
    )  # fmt: skip
    exact = DeleteAclsRequest.DeleteAclsFilter(
        resource_type_filter=2, resource_name_filter="orders", pattern_type_filter=3,
        principal_filter="User:alice", host_filter="*", operation=3, permission_type=3,
    )  # fmt: skip
    result = delete_acls(view, DeleteAclsRequest(filters=[wanted, exact]))
    assert [len(each.matching_acls) for each in result.response.filter_results] == [2, 1]
    assert [record.id for record in result.records if isinstance(record, RemoveAccessControlEntryRecord)] == [*entries]
