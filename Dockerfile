# An image of the Debian package: `docker build -t orrery .`; compose.yaml runs it. See docs/install.md.

FROM debian:bookworm-slim AS build
WORKDIR /src
# First only what names the packages, so that they are installed again only if the list has changed.
COPY tools/deps.sh tools/packages.txt tools/
RUN tools/deps.sh build package explorer
COPY . .
RUN make deb INSTALL_DEPS=no

FROM debian:bookworm-slim
COPY --from=build /src/build/orrery_*.deb /tmp/orrery.deb
# The user has a fixed number, for volumes. The key that the package makes must not be in an image.
RUN groupadd --gid 10001 orrery \
    && useradd --uid 10001 --gid orrery --home-dir /var/lib/orrery --no-create-home --shell /usr/sbin/nologin orrery \
    && apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends /tmp/orrery.deb \
    && rm -rf /tmp/orrery.deb /etc/orrery /var/lib/apt/lists/*

# Only what reaches the container's own network can connect. With the well-known key the server does not
# start here, unless ORRERY_ALLOW_DEVELOPMENT_KEY is set.
ENV ORRERY_DATA=/var/lib/orrery ORRERY_HOST=0.0.0.0
USER 10001:10001
WORKDIR /var/lib/orrery
VOLUME /var/lib/orrery
EXPOSE 8081
HEALTHCHECK --interval=10s --timeout=6s --start-period=30s CMD ["orrery", "health", "--quiet"]
ENTRYPOINT ["orrery"]
CMD ["serve"]
