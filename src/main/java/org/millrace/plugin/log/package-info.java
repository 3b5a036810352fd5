/**
 * NCCL's logger, and Log4j's interface in front of it. In a process that is not Java there is no Log4j configuration,
 * and its user looks for lines where NCCL's are. The shim names {@link org.millrace.plugin.log.NcclLogProvider} to the
 * JVMs that it starts ({@code log4j.provider}); Java programs keep their own logging.
 */
@NullMarked
package org.millrace.plugin.log;

import org.jspecify.annotations.NullMarked;
