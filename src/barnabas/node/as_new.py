"""Delete everything durable that clients created, so that a test can reuse its broker.

Topics, dynamic settings, quotas, credentials and ACLs are deleted by requests to the controller, as a client would, so that the metadata
log stays true. The records that a new cluster writes itself stay.
"""

from __future__ import annotations

from collections.abc import Callable

from barnabas.api.serving.context import Controller
from barnabas.metadata.config_schema import ConfigResourceType
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages import (
    AlterClientQuotasRequest,
    AlterUserScramCredentialsRequest,
    DeleteAclsRequest,
    DeleteTopicsRequest,
    IncrementalAlterConfigsRequest,
)
from barnabas.security.acls import AclOperation, PatternType, Permission, ResourceType

__all__ = ["make_as_new"]

_DELETE = 1
# The controller of a new cluster writes it with the features (KIP-966).
_INITIAL_CONFIGS = frozenset({(int(ConfigResourceType.BROKER), "", "min.insync.replicas")})


async def make_as_new(controller: Controller, image: Callable[[], MetadataImage]) -> None:
    """Delete everything; `image` returns the committed metadata as of now."""
    await _delete_every_topic(controller, image())
    await _clear_every_config(controller, image())
    await _clear_quotas(controller, image())
    while image().scram.credentials:
        await _delete_credentials(controller, image())
    await _delete_acls(controller, image())


async def _delete_every_topic(controller: Controller, image: MetadataImage) -> None:
    topics = [DeleteTopicsRequest.DeleteTopicState(name=name) for name in image.topics.by_name]
    if topics:
        request = DeleteTopicsRequest(topics=topics)
        await controller.handle(ApiKey.DELETE_TOPICS, DeleteTopicsRequest.MAX_VERSION, request)


async def _clear_every_config(controller: Controller, image: MetadataImage) -> None:
    resources = [
        IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[
                IncrementalAlterConfigsRequest.AlterableConfig(name=key, config_operation=_DELETE, value=None)
                for key in values
                if (kind, name, key) not in _INITIAL_CONFIGS
            ],
        )
        for (kind, name), values in image.configs.by_resource.items()
    ]
    resources = [resource for resource in resources if resource.configs]
    if resources:
        request = IncrementalAlterConfigsRequest(resources=resources)
        await controller.handle(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)


async def _clear_quotas(controller: Controller, image: MetadataImage) -> None:
    entries = [
        AlterClientQuotasRequest.EntryData(
            entity=[AlterClientQuotasRequest.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
            ops=[AlterClientQuotasRequest.OpData(key=key, remove=True) for key in limits],
        )
        for entity, limits in image.client_quotas.entities.items()
    ]
    if entries:
        await controller.handle(ApiKey.ALTER_CLIENT_QUOTAS, 1, AlterClientQuotasRequest(entries=entries))


async def _delete_credentials(controller: Controller, image: MetadataImage) -> None:
    """Delete one credential of each user: a request may name a user only once, and a user may have one for each mechanism."""
    by_user = dict(image.scram.credentials.keys())
    request = AlterUserScramCredentialsRequest(
        deletions=[
            AlterUserScramCredentialsRequest.ScramCredentialDeletion(name=name, mechanism=mechanism)
            for name, mechanism in by_user.items()
        ]
    )
    await controller.handle(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, request)


async def _delete_acls(controller: Controller, image: MetadataImage) -> None:
    if image.acls.entries:
        every = DeleteAclsRequest.DeleteAclsFilter(
            resource_type_filter=ResourceType.ANY,
            resource_name_filter=None,
            pattern_type_filter=PatternType.ANY,
            principal_filter=None,
            host_filter=None,
            operation=AclOperation.ANY,
            permission_type=Permission.ANY,
        )
        await controller.handle(ApiKey.DELETE_ACLS, DeleteAclsRequest.MAX_VERSION, DeleteAclsRequest(filters=[every]))
