# barnabas in a container: docs/containers.md.
FROM python:3.13-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY packaging/commit_hook.py packaging/
COPY src src
# The demo copies this project, also where there is no clone.
COPY pipelines/shop pipelines/shop
RUN pip wheel --no-cache-dir --wheel-dir /wheels ".[cli]"

FROM python:3.13-slim
RUN groupadd --system --gid 10001 barnabas \
    && useradd --system --uid 10001 --gid barnabas --home-dir /var/lib/barnabas --shell /usr/sbin/nologin barnabas \
    && install -d -m 700 -o barnabas -g barnabas /var/lib/barnabas
# The wheel was made above, and its requirements are the wheels beside it.
# hadolint ignore=DL3013
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-index --find-links=/wheels "barnabas[cli]"
USER 10001
VOLUME /var/lib/barnabas
# Kafka's image reads the same variables; `docker run -e KAFKA_LISTENERS=…` overrides these. A listener without a login and an
# authorizer stops the start, unless KAFKA_BARNABAS_INSECURE=true says that it may be open.
ENV PYTHONUNBUFFERED=1 \
    KAFKA_LOG_DIRS=/var/lib/barnabas \
    KAFKA_LISTENERS=PLAINTEXT://:9092 \
    KAFKA_BARNABAS_METRICS_LISTEN=127.0.0.1:9308
EXPOSE 9092 9308
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:9308/readyz', timeout=2)"]
ENTRYPOINT ["barnabas"]
CMD ["start"]
