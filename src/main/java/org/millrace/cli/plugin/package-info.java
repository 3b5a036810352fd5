/** {@code millrace plugin}: puts the NCCL plugin where programs that are not Java find it. */
@NullMarked
package org.millrace.cli.plugin;

import org.jspecify.annotations.NullMarked;
