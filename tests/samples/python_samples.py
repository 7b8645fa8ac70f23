"""Python as introductions to Kafka print it, for `exec`: only what today's libraries would refuse is corrected, and said in a comment.

Each sample's address is `localhost:9092`, which the test replaces; the functions it calls (`process_order`, `transform`, …) come from
the test.
"""

KEYED_AND_KEYLESS_PRODUCER = """
from kafka import KafkaProducer
producer = KafkaProducer(
    bootstrap_servers=['localhost:9092'],
    key_serializer=str.encode,
    value_serializer=str.encode,
)
producer.send('orders', key='user:42', value='{"item": "monitor", "qty": 2}')
producer.send('orders', key='user:99', value='{"item": "keyboard", "qty": 1}')
producer.send('orders', value='{"event": "heartbeat"}')
producer.flush()
"""

QUEUE_CONSUMER = """
from kafka import KafkaConsumer
consumer = KafkaConsumer(
    'orders',
    bootstrap_servers=['localhost:9092'],
    group_id='order-processor',
    auto_offset_reset='earliest',
)
for msg in consumer:
    process_order(msg.value)
"""

# The introductions leave out the address, and where a new group begins.
AUTO_COMMIT_CONSUMER = """
from kafka import KafkaConsumer
consumer = KafkaConsumer('orders', group_id='processor', enable_auto_commit=True,
                         bootstrap_servers=['localhost:9092'], auto_offset_reset='earliest')
for msg in consumer:
    process(msg.value)
"""

MANUAL_COMMIT_CONSUMER = """
from kafka import KafkaConsumer
consumer = KafkaConsumer('orders', group_id='processor', enable_auto_commit=False,
                         bootstrap_servers=['localhost:9092'], auto_offset_reset='earliest')
for msg in consumer:
    process(msg.value)
    consumer.commit()
"""

IDEMPOTENT_PRODUCER = """
from kafka import KafkaProducer
producer = KafkaProducer(
    bootstrap_servers=['localhost:9092'],
    acks='all',
    retries=3,
    enable_idempotence=True,
)
for number in range(100):
    producer.send('orders', value=b'%d' % number)
producer.flush()
"""

# Corrected: the consumer must not commit by itself and reads committed records; offsets are OffsetAndMetadata; the group goes
# along as its metadata, because a consumer has no attribute `group_id`.
TRANSACTION = """
from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata
producer = KafkaProducer(
    bootstrap_servers=['localhost:9092'],
    transactional_id='txn-order-processor',
    enable_idempotence=True,
)
producer.init_transactions()
consumer = KafkaConsumer('orders', group_id='processor', enable_auto_commit=False, isolation_level='read_committed',
                         bootstrap_servers=['localhost:9092'], auto_offset_reset='earliest')
while True:
    msgs = consumer.poll(timeout_ms=5000)
    if not msgs:
        continue
    producer.begin_transaction()
    for tp, records in msgs.items():
        for record in records:
            output = transform(record.value)
            producer.send('processed-orders', value=output)
    producer.send_offsets_to_transaction(
        {tp: OffsetAndMetadata(consumer.position(tp), '', -1) for tp in msgs},
        consumer.group_metadata()
    )
    producer.commit_transaction()
    committed()
"""

DELIVERY_REPORTS = """
from confluent_kafka import Producer
producer = Producer({'bootstrap.servers': 'localhost:9092'})
def delivery_report(err, msg):
    if err is not None:
        print(f"Delivery failed: {err}")
    else:
        print(f"Message delivered to {msg.topic()} [{msg.partition()}]")
# Key-based
producer.produce('clicks', key='alice', value='clicked_button', callback=delivery_report)
# No key
producer.produce('clicks', value='clicked_button', callback=delivery_report)
producer.flush()
"""
