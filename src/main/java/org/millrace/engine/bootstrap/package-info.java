/**
 * How the ranks of one group find each other, exchange what they need for their set-up, and tell each other of
 * failures.
 *
 * <p>
 * A star: rank 0 listens, every other rank has one TCP connection to it, and rank 0 passes on what each one says.
 * Nothing here is on the way of the data; each rank has one daemon thread, {@code millrace-control-RANK}, which alone
 * touches the rank's sockets and ends with {@link org.millrace.engine.bootstrap.ControlPlane#close()}.
 *
 * <h2>The protocol, version 4</h2>
 *
 * <pre>
 *   rank r                                             rank 0
 *     Hello {version, rank, size, pid, host, nonce}      ─▶
 *     ◀─  Challenge {version, pid, host, nonce, proof}     HMAC-SHA256 over both nonces and what both said
 *     Proof {proof}                                      ─▶
 *     ◀─  Present {rank, pid, host}                        one for every rank that is there, r among them; more come
 *     ◀─  Rejected {reason}                                instead
 *     ◀─  Recovery {offer}                                 first, between hosts; the same back
 *     Received {frames}                                  ─▶ and ◀─, now and then
 *     the group is complete when every rank is present
 *     Contribution {rank, sequence, collective, data}    ─▶ ─▶ every other rank
 *     PeerMessage {from, to, tag, data}                  ─▶ ─▶ rank `to` alone
 *     Failed {rank, message}                             ─▶ ─▶ every other rank; also if rank 0 loses a connection
 *     Departed {rank}                                    ─▶ ─▶ every other rank; then both sides close
 * </pre>
 *
 * A connection that two hosts have loses its stream when the network is cut. Rank r then makes another one, by what
 * {@link org.millrace.net.socket.StreamRecovery} does for streams of data; each side says on it, in 8 bytes, how many
 * whole frames of the other it has since the handshake, and sends what the other lacks. A process that has ended has
 * closed its stream, or has nobody at its port.
 *
 * <p>
 * Every frame begins with {@code int magic, int length of the body, byte type}, big-endian. A client that does not
 * begin with the magic is no rank: it is dropped, and nothing changes for the group. The proofs show that both sides
 * know the secret. Behind every frame after them are {@value org.millrace.engine.bootstrap.FrameSeal#BYTES} bytes, its
 * authentication code ({@link org.millrace.engine.bootstrap.FrameSeal}): one who can alter the traffic and does not
 * know the secret can only end a connection. With {@code MILLRACE_TLS=1} all of it is under TLS, and cannot be read
 * either.
 */
@NullMarked
package org.millrace.engine.bootstrap;

import org.jspecify.annotations.NullMarked;
