# A server for a folder of documents:
#
#   docker build --tag ifqa .
#   docker run --publish 127.0.0.1:8017:8017 --volume ./documents:/documents:ro --volume ifqa:/data \
#     --volume ./token.txt:/run/secrets/ifqa-token:ro ifqa
#
# Any other command: docker run --rm ifqa ask "If ..., ...?"
ARG BASE=python:3.12-slim-bookworm

FROM ${BASE} AS build
# torch without CUDA; with it, for a GPU: --build-arg TORCH=pypi
ARG TORCH=cpu
WORKDIR /src
COPY constraints.txt ./
COPY .ci/install .ci/
COPY locks locks
# One layer of dependencies, which a change of the code leaves as it is.
RUN python3 -m venv /opt/ifqa && PIP_NO_CACHE_DIR=1 /opt/ifqa/bin/python .ci/install
COPY . .
RUN /opt/ifqa/bin/pip install --no-cache-dir --no-deps --no-index --no-build-isolation .

FROM ${BASE}
RUN useradd --uid 10001 --create-home --home-dir /data ifqa && mkdir /documents
COPY --from=build /opt/ifqa /opt/ifqa
ENV PATH=/opt/ifqa/bin:${PATH} PYTHONDONTWRITEBYTECODE=1
USER ifqa
WORKDIR /data
VOLUME /data
EXPOSE 8017
# Reading the documents for the first time may take minutes.
HEALTHCHECK --start-period=10m CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8017/readyz', timeout=5)"]
ENTRYPOINT ["ifqa"]
CMD ["serve", "--docs", "/documents", "--host", "0.0.0.0", "--allow-host", "localhost", "--token-file", "/run/secrets/ifqa-token"]
