import * as oidc from 'openid-client';
import { accessTokensEnd, failure, must, person, run, setup, yes } from './talk.mjs';
import { authentication, challenge, redirectUri, registration, toolCall } from './confidential.mjs';

const insecure = { execute: [oidc.allowInsecureRequests] }; // the server under test is on loopback

/** Discovery and registration are one call in this library; what it found tells them apart. */
async function register() {
  const { metadata, key } = await registration('openid-client');
  const registered = await oidc.dynamicClientRegistration(new URL(setup.issuer), metadata, oidc.None(), { ...insecure, algorithm: 'oauth2' });
  must(registered.serverMetadata().issuer === setup.issuer, 'the issuer has another name');
  must(registered.serverMetadata().supportsPKCE('S256'), 'PKCE is not announced');
  yes('discover');
  const client = registered.clientMetadata();
  must(client.token_endpoint_auth_method === setup.auth, `registered for ${client.token_endpoint_auth_method}`);
  yes('register');
  const config = new oidc.Configuration(registered.serverMetadata(), client.client_id, client, authentication(oidc, client, key));
  oidc.allowInsecureRequests(config);
  return config;
}

async function signIn(config, scope) {
  const verifier = oidc.randomPKCECodeVerifier();
  const state = oidc.randomState();
  const location = await person(
    oidc.buildAuthorizationUrl(config, {
      redirect_uri: redirectUri,
      scope,
      state,
      code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      resource: setup.resource,
    }),
  );
  return oidc.authorizationCodeGrant(config, location, { pkceCodeVerifier: verifier, expectedState: state }, { resource: setup.resource });
}

async function call(config, tokens, name, args) {
  const { headers, body } = toolCall(name, args);
  const response = await oidc.fetchProtectedResource(config, tokens.access_token, new URL(setup.resource), 'POST', body, headers);
  const { result } = await response.json();
  must(response.status === 200 && !result.isError, `${name} is refused`);
}

await run(async () => {
  const config = await register();
  const first = await signIn(config, 'contacts:read');
  must(first.scope === 'contacts:read' && first.refresh_token, 'the answer holds something else');
  yes('sign in');
  await call(config, first, 'list_contacts', {});
  yes('call');

  const refused = await failure(call(config, first, 'upsert_contact', { phone: '+14155550123' }), 'a call without its permission');
  must(refused.status === 403 && challenge(refused).error === 'insufficient_scope', `the challenge: ${refused.stack}`);
  const wider = await signIn(config, challenge(refused).scope);
  await call(config, wider, 'upsert_contact', { phone: '+14155550123', name: 'Sara' });
  yes('step-up');

  await accessTokensEnd();
  const ended = await failure(call(config, wider, 'list_contacts', {}), 'a call with a token that ended');
  must(ended.status === 401 && challenge(ended).error === 'invalid_token', `the challenge: ${ended.stack}`);
  const next = await oidc.refreshTokenGrant(config, wider.refresh_token, { resource: setup.resource });
  must(next.refresh_token !== wider.refresh_token, 'the refresh token did not rotate');
  await call(config, next, 'list_contacts', {});
  yes('refresh');

  if (setup.auth !== 'none') {
    must((await oidc.tokenIntrospection(config, next.access_token)).active === true, 'a good token is said to be dead');
  }
  await oidc.tokenRevocation(config, next.refresh_token);
  const revoked = await failure(call(config, next, 'list_contacts', {}), 'a call after the revocation');
  must(revoked.status === 401, `after the revocation: ${revoked.stack}`);
  const again = await failure(oidc.refreshTokenGrant(config, next.refresh_token), 'a refresh after the revocation');
  must(again.error === 'invalid_grant', `a refresh after the revocation: ${again.stack}`);
  if (setup.auth !== 'none') {
    must((await oidc.tokenIntrospection(config, next.access_token)).active === false, 'a revoked token is said to be good');
  }
  yes('revoke');
});
