/**
 * A transport outside of Millrace, added in six steps with only the exported packages of the module:
 * {@link com.example.millrace.unix.UnixSocketTransport}.
 *
 * <ol>
 * <li>Define the transport: its name, the ranks that it connects, its two ends. {@code UnixSocketTransport}
 * <li>Set up the proxy: allocate memory, and open the address that the peer connects to. {@code proxySetup},
 * {@code setup}
 * <li>Connect the proxy with its peer, without ever waiting. {@code proxyConnect}
 * <li>Progress: move steps between the device's memory and the peer. {@code SendProgress}, {@code ReceiveProgress}
 * <li>Clean up, after any phase, twice. {@code proxyFree}
 * <li>Register: {@code META-INF/services/org.millrace.transport.Transport}, or {@code provides} in a module descriptor.
 * </ol>
 */
package com.example.millrace.unix;
