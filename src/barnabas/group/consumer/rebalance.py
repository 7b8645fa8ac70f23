"""The steps of a rebalance in a consumer group, taken by a member's heartbeat or join.

    has the member changed?              write it; another topic, expression or assignor bumps the group epoch
    has a topic changed?                 then the metadata hash differs: bump the group epoch
    group epoch > assignment epoch?      compute a target assignment, at most once per assignment interval
    has the member not its target?       take the next step of its reconciliation

Each step adds records to those of the request, and works on the members as they will be after these records. Only timers and the history
of rebalances change here. Members of both protocols use the same steps.

Expressions are resolved after the request, in the executor, at most every 10 seconds. A separate operation writes the topics; until then
the member has only the topics that it names.

Source: Kafka class `GroupMetadataManager` (`hasMemberSubscriptionChanged` … `maybeReconcile`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from enum import Enum
from functools import partial

from barnabas.coordinator.result import CoordinatorRecord, CoordinatorResult
from barnabas.group.consumer import records as records_of
from barnabas.group.consumer.assignor import GroupSpec, MemberSubscription
from barnabas.group.consumer.assignors import find_assignor
from barnabas.group.consumer.current_assignment import Owned, Reconciliation
from barnabas.group.consumer.group import ConsumerGroup, is_homogeneous
from barnabas.group.consumer.member import ConsumerGroupMember, MemberState
from barnabas.group.consumer.records import ResolvedRegularExpression
from barnabas.group.consumer.timers import ConsumerGroupTimers
from barnabas.group.consumer.topic_regex import check_regex, resolve_regexes
from barnabas.group.epoch_group import METADATA_REFRESH_MS
from barnabas.group.group_environment import GroupEnvironment
from barnabas.group.modern_group import NO_ASSIGNMENT, Assignment, add_to_counts
from barnabas.group.ordered_growth import Given, GrowthWatch, held_partitions
from barnabas.group.sender import Sender

logger = logging.getLogger(__name__)

REGEX_REFRESH_MIN_MS = 10_000
"""Expressions are not resolved more often (a constant in Kafka)."""
"""When a group checks its topics without a change of the metadata (Kafka: Integer.MAX_VALUE)."""

Records = list[CoordinatorRecord]


class RegexUpdate(Enum):
    """How a request has changed the member's expression."""

    NONE = "unchanged"
    UPDATED = "changed, and not looked up yet"
    RESOLVED = "changed to one whose topics are known, or to none"


class ConsumerGroupRebalance:
    """The steps, for the consumer groups of one shard."""

    def __init__(self, environment: GroupEnvironment, timers: ConsumerGroupTimers) -> None:
        self._environment = environment
        self._timers = timers
        self.growth = GrowthWatch(
            environment,
            ConsumerGroup,
            topics=lambda group: group.subscribed_topic_names,
            given=_given,
            release=self._release,
        )

    @property
    def _default_assignor(self) -> str:
        return self._environment.config.group_consumer_assignors[0]

    def names_changed(
        self, group: ConsumerGroup, old: ConsumerGroupMember, new: ConsumerGroupMember, records: Records
    ) -> bool:
        """Write a changed member; return whether its topic names have changed."""
        if new is not old and new != old:
            records.append(records_of.member_record(group.group_id, new))
        return new.subscribed_topic_names != old.subscribed_topic_names

    def assignor_changed(self, group: ConsumerGroup, old: ConsumerGroupMember, new: ConsumerGroupMember) -> bool:
        """Return whether the group would now be assigned by another assignor."""
        if old.server_assignor == new.server_assignor:
            return False
        before = group.preferred_assignor() or self._default_assignor
        return before != (group.preferred_assignor(old, new) or self._default_assignor)

    def update_regex(
        self,
        group: ConsumerGroup,
        old: ConsumerGroupMember,
        new: ConsumerGroupMember,
        records: Records,
        sender: Sender,
    ) -> RegexUpdate:
        """Store a changed expression, and schedule the resolution of the group's expressions if it is due.

        Raises: KafkaError INVALID_REGULAR_EXPRESSION.
        """
        update, refresh = RegexUpdate.NONE, False
        if old.subscribed_topic_regex != new.subscribed_topic_regex:
            update = RegexUpdate.UPDATED
            if old.regex and group.regex_subscribers[old.regex] == 1:
                records.append(records_of.regex_tombstone(group.group_id, old.regex))
            if new.regex and group.regex_subscribers[new.regex] == 0:
                check_regex(new.regex)
                refresh = True
            elif (new.regex and new.regex in group.resolved_regexes) or (old.regex and not new.regex):
                update = RegexUpdate.RESOLVED
        if refresh or group.regex_subscribers:
            self._maybe_look_up(group, old, new, refresh, sender)
        return update

    def _maybe_look_up(
        self,
        group: ConsumerGroup,
        old: ConsumerGroupMember,
        new: ConsumerGroupMember,
        refresh: bool,
        sender: Sender,
    ) -> None:
        environment = self._environment
        key = f"{group.group_id}-regex"
        if key in environment.timer:
            return
        now_ms = environment.now_ms()
        # All expressions of a group are resolved together: any of them has the time.
        last = next(iter(group.resolved_regexes.values()), None)
        if last is not None and now_ms <= last.timestamp_ms + REGEX_REFRESH_MIN_MS:
            return
        regexes = group.regex_subscribers_with(old, new)
        if not regexes:
            return
        if (
            refresh
            or last is None
            or len(regexes) != len(group.resolved_regexes)
            or last.version < environment.last_new_topics_version
            or now_ms > last.timestamp_ms + environment.config.group_consumer_regex_refresh_interval_ms
        ):
            image = environment.image()
            look_up = partial(
                resolve_regexes,
                list(regexes),
                image.topics.by_name,
                version=max(image.provenance.offset, 0),
                now_ms=now_ms,
                sees=sender.sees,
            )
            environment.timer.compute(key, look_up, partial(self._resolved, group.group_id))

    def _resolved(self, group_id: str, resolved: Mapping[str, ResolvedRegularExpression]) -> CoordinatorResult[None]:
        """Write what the expressions match, and bump the group epoch if that has changed."""
        environment = self._environment
        group = environment.find(group_id, ConsumerGroup)
        if group is None:
            return CoordinatorResult(None)
        image = environment.image()
        records: Records = []
        counts = dict(group.subscribed_topic_names)
        changed = False
        for regex, found in resolved.items():
            if not group.regex_subscribers[regex]:
                continue
            before = group.resolved_regexes.get(regex)
            topics = frozenset[str]() if before is None else before.topics
            if found.topics != topics:
                changed = True
                add_to_counts(counts, topics, by_regex=-1)
                add_to_counts(counts, found.topics, by_regex=1)
            records.append(records_of.regex_record(group_id, regex, found))
        metadata_hash = group.compute_metadata_hash(counts, environment.topic_hashes, image)
        if changed or metadata_hash != group.metadata_hash:
            epoch = group.group_epoch + 1
            cause = "topics that a regular expression matches" if changed else "metadata of subscribed topics changed"
            environment.history.because(group_id, epoch, cause)
            records.append(records_of.epoch_record(group_id, epoch, metadata_hash))
            group.set_metadata_refresh_deadline(environment.now_ms() + METADATA_REFRESH_MS, epoch)
        return CoordinatorResult(None, records)

    def update_metadata(
        self,
        group: ConsumerGroup,
        cause: str | None,
        old: ConsumerGroupMember,
        new: ConsumerGroupMember,
        records: Records,
    ) -> tuple[int, bool]:
        """Bump the group epoch for a cause, or because a topic has changed.

        Returns: the group epoch and whether the group is homogeneous, after the records.
        """
        environment = self._environment
        counts = group.counts_with(old, new)
        metadata_hash = group.compute_metadata_hash(counts, environment.topic_hashes, environment.image())
        is_new = not group.has_member(new.member_id) and new.instance_id not in group.static_members
        homogeneous = is_homogeneous(group.regex_subscribers_with(old, new), counts, len(group.members) + is_new)
        epoch = group.group_epoch
        if cause is None and metadata_hash != group.metadata_hash:
            cause = "metadata of subscribed topics changed"
        if cause is not None:
            epoch += 1
            environment.history.because(group.group_id, epoch, cause, new.member_id, new.client_id)
            logger.info("group %s: epoch %d: %s", group.group_id, epoch, cause)
            records.append(records_of.epoch_record(group.group_id, epoch, metadata_hash))
        group.set_metadata_refresh_deadline(environment.now_ms() + METADATA_REFRESH_MS, epoch)
        if group.has_partition_metadata_record:
            records.append(records_of.partition_metadata_tombstone(group.group_id))
        return epoch, homogeneous

    def update_target(
        self,
        group: ConsumerGroup,
        epoch: int,
        old: ConsumerGroupMember,
        new: ConsumerGroupMember,
        homogeneous: bool,
        records: Records,
    ) -> tuple[int, Assignment]:
        """Compute the target assignment of a group epoch, unless it is there or the last one is too young.

        Returns: the assignment epoch, and what the member should have at it.
        """
        if group.assignment_epoch >= epoch or not self._may_assign(group):
            return group.assignment_epoch, self.target_of(group, new)
        members, targets = self._with(group, new)
        topics = {topic for member in members.values() for topic in group.topics_of(member)}
        held = held_partitions(self._environment, group.group_id, topics)
        self.growth.watch(group.group_id, topics)
        image = self._environment.image()
        by_name = image.topics.by_name
        spec = GroupSpec(
            members={
                member_id: MemberSubscription(
                    frozenset(by_name[topic].topic_id for topic in group.topics_of(member) if topic in by_name),
                    member.instance_id,
                    member.rack_id,
                )
                for member_id, member in members.items()
            },
            homogeneous=homogeneous,
            assigned=targets,
            owners=group.inverted_target_assignment,
            partition_counts={topic_id: len(topic.partitions) for topic_id, topic in image.topics.by_id.items()},
            held={by_name[topic].topic_id: partitions for topic, partitions in held.items()},
        )
        assignor = group.preferred_assignor(old, new) or self._default_assignor
        assignment = find_assignor(assignor)(spec)
        logger.info("group %s: assignment of epoch %d by %s", group.group_id, epoch, assignor)
        for member_id in members:
            target = assignment.get(member_id, NO_ASSIGNMENT)
            if member_id not in targets or target != targets[member_id]:
                records.append(records_of.target_record(group.group_id, member_id, target))
        records.append(records_of.target_epoch_record(group.group_id, epoch, self._environment.now_ms()))
        return epoch, assignment.get(new.member_id, NO_ASSIGNMENT)

    def _release(self, group: ConsumerGroup, cause: str) -> CoordinatorResult[None]:
        """Bump the group epoch: the next heartbeat computes a target with partitions that are no longer held."""
        epoch = group.group_epoch + 1
        self._environment.history.because(group.group_id, epoch, cause)
        logger.info("group %s: epoch %d: %s", group.group_id, epoch, cause)
        return CoordinatorResult(None, [records_of.epoch_record(group.group_id, epoch, group.metadata_hash)])

    def _may_assign(self, group: ConsumerGroup) -> bool:
        """Return whether the last assignment is old enough; the first one, and that of a group that was empty, always is."""
        interval_ms = self._environment.group_configs.int_value(group.group_id, "consumer.assignment.interval.ms")
        if group.assignment_timestamp_ms == 0 or interval_ms == 0:
            return True
        return self._environment.now_ms() >= group.assignment_timestamp_ms + interval_ms

    @staticmethod
    def target_of(group: ConsumerGroup, member: ConsumerGroupMember) -> Assignment:
        """Return a member's present target; the successor of a static member has its predecessor's."""
        member_id = member.member_id
        if member.instance_id is not None:
            member_id = group.static_members.get(member.instance_id, "")
        return group.target_assignment.get(member_id, NO_ASSIGNMENT)

    @staticmethod
    def _with(
        group: ConsumerGroup, new: ConsumerGroupMember
    ) -> tuple[dict[str, ConsumerGroupMember], dict[str, Assignment]]:
        """Return members and targets with one member changed, or in the place of a static member."""
        replaced = None if new.instance_id is None else group.static_members.get(new.instance_id)
        targets = dict(group.target_assignment)
        if replaced is None or replaced == new.member_id:
            return {**group.members, new.member_id: new}, targets
        members = {}
        for member_id, member in group.members.items():
            if member_id == replaced:
                members[new.member_id] = new
            else:
                members[member_id] = member
        targets[new.member_id] = targets.pop(replaced, NO_ASSIGNMENT)
        return members, targets

    def reconcile(
        self,
        group: ConsumerGroup,
        member: ConsumerGroupMember,
        target_epoch: int,
        target: Assignment,
        *,
        subscription_changed: bool,
        owned: Owned | None,
        records: Records,
    ) -> ConsumerGroupMember:
        """Take a member one step towards its target; a timer runs while it has partitions to revoke."""
        if not subscription_changed and member.is_reconciled_to(target_epoch):
            return member
        by_name = self._environment.image().topics.by_name
        updated = Reconciliation(
            member=member,
            target_epoch=target_epoch,
            target=target,
            subscribed_topic_ids=frozenset(
                by_name[topic].topic_id for topic in group.topics_of(member) if topic in by_name
            ),
            subscription_changed=subscription_changed,
            partition_epoch=group.partition_epoch,
            owned=owned,
        ).next_member()
        if updated != member:
            records.append(records_of.current_record(group.group_id, updated))
            if not updated.uses_classic_protocol:
                if updated.state is MemberState.UNREVOKED_PARTITIONS:
                    self._timers.schedule_rebalance(group.group_id, updated)
                else:
                    self._timers.cancel_rebalance(group.group_id, updated.member_id)
        return updated


def _given(group: ConsumerGroup) -> Given | None:
    """Return what the target assignment gives out; None while it is behind the group epoch."""
    if group.group_epoch > group.assignment_epoch:
        return None
    return lambda topic, partition: partition in group.inverted_target_assignment.get(topic.topic_id, {})
