/**
 * Common base of the data paths {@code takeover} and {@code fallback}. A {@link org.millrace.plugin.path.NetEndpoint}
 * makes connections, with the networks of {@code org.millrace.net}. A {@link org.millrace.plugin.path.DataPath} creates
 * the ends of each connection and determines the threads that move their data.
 */
@NullMarked
package org.millrace.plugin.path;

import org.jspecify.annotations.NullMarked;
