/**
 * How somebody else adds a transport to Millrace, in six steps, with nothing but what the module exports:
 * {@link com.example.millrace.unix.UnixSocketTransport}.
 *
 * <ol>
 * <li>Define the transport: its name, whom it connects, its two ends. {@code UnixSocketTransport}
 * <li>Set the proxy up: take memory, open what the peer is to reach. {@code proxySetup}, {@code setup}
 * <li>Connect the proxy with its peer, without ever waiting. {@code proxyConnect}
 * <li>Progress: move steps between the device's memory and the peer. {@code SendProgress}, {@code ReceiveProgress}
 * <li>Clean up, after any phase, twice. {@code proxyFree}
 * <li>Register: {@code META-INF/services/org.millrace.transport.Transport}, or {@code provides} in a module descriptor.
 * </ol>
 */
package com.example.millrace.unix;
