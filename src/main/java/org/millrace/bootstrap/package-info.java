/**
 * Bootstrap and control plane: the ranks of one group find each other, exchange set-up data, and report failures to
 * each other.
 *
 * <p>
 * The topology is a star. Rank 0 listens, each other rank has one TCP connection to it, and rank 0 relays all messages.
 * The connections carry no data of operations. Each rank has one daemon thread, {@code millrace-control-RANK}. Only
 * this thread accesses the rank's sockets. The thread ends with {@link org.millrace.bootstrap.ControlPlane#close()}.
 * {@code Coordinator} notices lost ranks on rank 0, and {@code Member} notices a lost rank 0 on the other ranks.
 * {@link org.millrace.bootstrap.GroupFailure} keeps the first failure and reports it.
 *
 * <h2>The protocol, version {@value org.millrace.bootstrap.MessageCodec#VERSION}</h2>
 *
 * <pre>
 *   rank r                                             rank 0
 *     Hello {version, identity, size, nonce}             ─▶ identity: {rank, pid, host, run, kernel, startTicks}
 *     ◀─  Challenge {version, identity, nonce, proof}
 *                                                          HMAC-SHA256 over both sides' nonces and fields
 *     Proof {proof}                                      ─▶
 *     ◀─  Rejected {reason}                                if rank 0 refuses rank r; the last message
 *     ◀─  Recovery {offer}                                 between hosts, before Present; rank r sends its own offer
 *     ◀─  Present {identity}                               one for each present rank, including r; more follow
 *     Received {frames}                                  ─▶ and ◀─, at intervals
 *     the group is complete when every rank is present
 *     Contribution {rank, sequence, collective, data}    ─▶ ─▶ every other rank
 *     PeerMessage {from, to, tag, data}                  ─▶ ─▶ rank `to` alone
 *     Failed {rank, kind, peer, operation, message}      ─▶ ─▶ every other rank; also if rank 0 loses a connection
 *     Departed {rank}                                    ─▶ ─▶ every other rank; then both sides close
 * </pre>
 *
 * Two runs may use one address, for instance if a rank of a killed run still waits for its rank 0. Both sides therefore
 * compare their runs ({@code MILLRACE_RUN_ID}) before the proof, and the rank of the other run is refused. Without
 * {@code MILLRACE_RUN_ID}, rank 0 compares the start times of processes on one machine. A rank that started before rank
 * 0 is admitted only after a delay of at most a second. If two processes claim one rank number, a process that started
 * after rank 0 has priority over a process that started before rank 0. If both started before rank 0, or both after it,
 * the process with the start time nearest to rank 0's start time has priority. A rank without {@code MILLRACE_RUN_ID}
 * fails if a second process answers it as rank 0.
 *
 * <p>
 * An interrupted network between two hosts ends the stream of a connection. Rank r then makes a new stream with
 * {@link org.millrace.net.socket.StreamRecovery}, as for streams of data. On the new stream, each side first sends, in
 * 8 bytes, the number of whole frames that it has received since the handshake. Then each side sends the frames that
 * the other lacks. The stream of an ended process is not replaced, because the process has closed the stream, or no
 * process listens at its port.
 *
 * <p>
 * After losses, the living ranks make a smaller group. They agree with {@link org.millrace.bootstrap.Recovery}, over
 * further control planes. Rank 0 of each of these control planes is the lowest living rank.
 *
 * <p>
 * Each frame begins with {@code int magic, int length of the body, byte type}, big-endian. A client that does not begin
 * with the magic is not a rank. Rank 0 drops such a client, and the group is not affected. The proofs show that both
 * sides know the secret. After the proofs, {@value org.millrace.bootstrap.FrameSeal#BYTES} bytes of authentication code
 * ({@link org.millrace.bootstrap.FrameSeal}) follow each frame. An attacker that can alter the traffic and does not
 * know the secret can therefore only end a connection. With {@code MILLRACE_TLS=1}, the whole protocol runs under TLS,
 * so an attacker cannot read the traffic either.
 */
@NullMarked
package org.millrace.bootstrap;

import org.jspecify.annotations.NullMarked;
