/**
 * The transports P2P and SHM: slots and counters lie in memory that both ends reach, of one process or of one host. The
 * devices write and read it themselves, or a proxy copies. No network is used; what its proxies would have noticed,
 * that the ranks disagree on an operation, is checked here.
 */
@NullMarked
package org.millrace.transport.shared;

import org.jspecify.annotations.NullMarked;
