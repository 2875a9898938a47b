import * as oauth from 'oauth4webapi';
import { accessTokensEnd, failure, must, person, run, setup, yes } from './talk.mjs';
import { authentication, challenge, redirectUri, registration, toolCall } from './confidential.mjs';

const insecure = { [oauth.allowInsecureRequests]: true }; // the server under test is on loopback

async function discover() {
  const resource = new URL(setup.resource);
  const about = await oauth.processResourceDiscoveryResponse(resource, await oauth.resourceDiscoveryRequest(resource, insecure));
  const issuer = new URL(about.authorization_servers[0]);
  const server = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, { ...insecure, algorithm: 'oauth2' }));
  must(server.issuer === setup.issuer, 'the issuer has another name');
  yes('discover');
  return server;
}

async function register(server) {
  const { metadata, key } = await registration('oauth4webapi');
  const client = await oauth.processDynamicClientRegistrationResponse(await oauth.dynamicClientRegistrationRequest(server, metadata, insecure));
  must(client.token_endpoint_auth_method === setup.auth, `registered for ${client.token_endpoint_auth_method}`);
  yes('register');
  return { client, how: authentication(oauth, client, key) };
}

async function signIn({ server, client, how }, scope) {
  const verifier = oauth.generateRandomCodeVerifier();
  const state = oauth.generateRandomState();
  const url = new URL(server.authorization_endpoint);
  url.search = new URLSearchParams({
    response_type: 'code',
    client_id: client.client_id,
    redirect_uri: redirectUri,
    scope,
    state,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    resource: setup.resource,
  });
  const parameters = oauth.validateAuthResponse(server, client, await person(url), state);
  const more = { ...insecure, additionalParameters: { resource: setup.resource } };
  const response = await oauth.authorizationCodeGrantRequest(server, client, how, parameters, redirectUri, verifier, more);
  return oauth.processAuthorizationCodeResponse(server, client, response);
}

async function refresh({ server, client, how }, tokens) {
  const response = await oauth.refreshTokenGrantRequest(server, client, how, tokens.refresh_token, { ...insecure, additionalParameters: { resource: setup.resource } });
  return oauth.processRefreshTokenResponse(server, client, response);
}

async function introspect({ server, client, how }, token) {
  return oauth.processIntrospectionResponse(server, client, await oauth.introspectionRequest(server, client, how, token, insecure));
}

async function call(tokens, name, args) {
  const { headers, body } = toolCall(name, args);
  const response = await oauth.protectedResourceRequest(tokens.access_token, 'POST', new URL(setup.resource), headers, body, insecure);
  const { result } = await response.json();
  must(response.status === 200 && !result.isError, `${name} is refused`);
}

await run(async () => {
  const server = await discover();
  const app = { server, ...(await register(server)) };
  const first = await signIn(app, 'contacts:read');
  must(first.scope === 'contacts:read' && first.refresh_token, 'the answer holds something else');
  yes('sign in');
  await call(first, 'list_contacts', {});
  yes('call');

  const refused = await failure(call(first, 'upsert_contact', { phone: '+14155550123' }), 'a call without its permission');
  must(refused.status === 403 && challenge(refused).error === 'insufficient_scope', `the challenge: ${refused.stack}`);
  const wider = await signIn(app, challenge(refused).scope);
  await call(wider, 'upsert_contact', { phone: '+14155550123', name: 'Sara' });
  yes('step-up');

  await accessTokensEnd();
  const ended = await failure(call(wider, 'list_contacts', {}), 'a call with a token that ended');
  must(ended.status === 401 && challenge(ended).error === 'invalid_token', `the challenge: ${ended.stack}`);
  const next = await refresh(app, wider);
  must(next.refresh_token !== wider.refresh_token, 'the refresh token did not rotate');
  await call(next, 'list_contacts', {});
  yes('refresh');

  if (setup.auth !== 'none') must((await introspect(app, next.access_token)).active === true, 'a good token is said to be dead');
  await oauth.processRevocationResponse(await oauth.revocationRequest(server, app.client, app.how, next.refresh_token, insecure));
  const revoked = await failure(call(next, 'list_contacts', {}), 'a call after the revocation');
  must(revoked.status === 401, `after the revocation: ${revoked.stack}`);
  const again = await failure(refresh(app, next), 'a refresh after the revocation');
  must(again.error === 'invalid_grant', `a refresh after the revocation: ${again.stack}`);
  if (setup.auth !== 'none') must((await introspect(app, next.access_token)).active === false, 'a revoked token is said to be good');
  yes('revoke');
});
