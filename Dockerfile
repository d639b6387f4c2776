# A server for a folder of documents:
#
#   docker build --tag ifqa .
#   docker run --publish 127.0.0.1:8017:8017 --volume ./documents:/documents:ro --volume ifqa:/data \
#     --volume ./token.txt:/run/secrets/ifqa-token:ro ifqa
#
# Any other command: docker run --rm ifqa ask "If ..., ...?"
ARG BASE=python:3.12-slim-bookworm

FROM ${BASE} AS build
# torch without CUDA; for a GPU: --build-arg TORCH_INDEX=https://pypi.org/simple
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
WORKDIR /src
COPY constraints.txt pyproject.toml ./
# One layer of dependencies, which a change of the code leaves as it is.
RUN python3 -m venv /opt/ifqa \
 && /opt/ifqa/bin/python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies'], sep='\n')" \
    > requirements.txt \
 && /opt/ifqa/bin/pip install --no-cache-dir --constraint constraints.txt --index-url "${TORCH_INDEX}" torch \
 && /opt/ifqa/bin/pip install --no-cache-dir --constraint constraints.txt --requirement requirements.txt hatchling
COPY . .
RUN /opt/ifqa/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

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
