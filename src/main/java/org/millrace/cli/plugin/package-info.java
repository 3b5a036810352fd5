/** {@code millrace plugin}: puts the NCCL plugin where programs that are not Java find it. */
package org.millrace.cli.plugin;
