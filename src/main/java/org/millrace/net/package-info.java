/**
 * Moving frames from one process to another: a header of a few words, and a payload whose destination the receiver
 * picks when it sees the header.
 *
 * <p>
 * Nothing here knows of steps, slots or GPUs. Senders and receivers never block, never allocate per frame, and belong
 * to one thread at a time.
 */
package org.millrace.net;
