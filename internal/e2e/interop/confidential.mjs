// How a client of openid-client or oauth4webapi proves who it is at the token endpoint (RFC 7591 §2), and what both
// send to the resource.
import { setup } from './talk.mjs';

export const redirectUri = 'http://127.0.0.1:53682/callback';

/** Metadata for the registration, and for private_key_jwt the key whose public half is in it. */
export async function registration(name) {
  const metadata = {
    client_name: name,
    redirect_uris: [redirectUri],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: setup.auth,
  };
  if (setup.auth !== 'private_key_jwt') return { metadata };
  const pair = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, false, ['sign', 'verify']);
  const { kty, crv, x, y } = await crypto.subtle.exportKey('jwk', pair.publicKey);
  const jwk = { kty, crv, x, y, kid: 'interop', use: 'sig', alg: 'ES256' };
  return { metadata: { ...metadata, token_endpoint_auth_signing_alg: 'ES256', jwks: { keys: [jwk] } }, key: { key: pair.privateKey, kid: 'interop' } };
}

/** How the client authenticates; both libraries name the ways alike. */
export function authentication(library, client, key) {
  switch (setup.auth) {
    case 'client_secret_basic':
      return library.ClientSecretBasic(client.client_secret);
    case 'client_secret_post':
      return library.ClientSecretPost(client.client_secret);
    case 'private_key_jwt':
      return library.PrivateKeyJwt(key);
    default:
      return library.None();
  }
}

/** A tool call by hand: neither library knows MCP. */
export function toolCall(name, args) {
  return {
    headers: new Headers({ 'content-type': 'application/json', accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-11-25' }),
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }),
  };
}

/** The challenge of a refused call, as the library read it. */
export function challenge(error) {
  return error.cause?.find?.(({ scheme }) => scheme === 'bearer')?.parameters ?? {};
}
