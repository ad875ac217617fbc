/* registry: reading the labels of a container image from an OCI distribution registry, without pulling the image.
 *
 *   reference_core      "ghcr.io/acme/aim:1.0" -> registry, repository, tag or digest
 *   keychain_core       which credentials of pull secrets apply to an image
 *   challenge_core      WWW-Authenticate, and the request for a token
 *   dialogue_core       the dialogue: ping, token, manifest, (platform's manifest,) configuration, labels
 *   address_core        which addresses may be connected to
 *   inspector           dialogues on the loop: limits, queue, and the labels that are kept (label_cache)
 *
 * The cores are pure: a dialogue asks for one request after the other and takes each answer, so that a test can play any
 * registry. Read first: dialogue_core.h. */
#ifndef FLYBALL_REGISTRY_H
#define FLYBALL_REGISTRY_H

#include "dialogue_core.h"
#include "inspector.h"
#include "keychain_core.h"
#include "reference_core.h"

#endif
