// What both TypeScript SDKs are put through. They differ in how a sign-in is finished and in how they step up.
import { accessTokensEnd, administratorRevokes, failure, must, no, person, setup, timesAsked, yes } from './talk.mjs';
import { Provider } from './provider.mjs';

export const write = { name: 'upsert_contact', arguments: { phone: '+14155550123', name: 'Sara' } };
const read = { name: 'list_contacts', arguments: {} };

/**
 * sdk is { Client, Transport, Unauthorized, options, finish(transport, location), stepUp(app) }.
 */
export async function exercise(name, sdk) {
  const app = await signIn(name, sdk);
  must(!(await app.client.callTool(read)).isError, 'list_contacts is refused');
  yes('call');

  await sdk.stepUp(app);

  const before = app.provider.kept.tokens;
  await accessTokensEnd();
  const asked = await timesAsked();
  must(!(await app.client.callTool(read)).isError, 'list_contacts is refused after a refresh');
  must(app.provider.kept.tokens.access_token !== before.access_token, 'the access token is the old one');
  must(app.provider.kept.tokens.refresh_token !== before.refresh_token, 'the refresh token did not rotate');
  must((await timesAsked()) === asked, 'the person was asked');
  yes('refresh');

  await administratorRevokes();
  delete app.provider.kept.url;
  const error = await failure(app.client.callTool(read), 'a call after the revocation');
  must(error instanceof sdk.Unauthorized && app.provider.kept.url, `after the revocation: ${error.stack}`);
  await app.signInAgain();
  must(!(await app.client.callTool(read)).isError, 'list_contacts is refused after the second sign-in');
  no('revoke', 'has no revocation call; once an administrator revoked, its next call asks the person to sign in again');
}

async function signIn(name, sdk) {
  const provider = new Provider(name);
  let transport;
  const open = () => {
    transport = new sdk.Transport(new URL(setup.resource), { authProvider: provider });
    return transport;
  };
  const client = new sdk.Client({ name: 'interop', version: '1' }, sdk.options);
  const error = await failure(client.connect(open()), 'connecting without a token');
  must(error instanceof sdk.Unauthorized, `connecting without a token: ${error.stack}`);
  const found = provider.kept.discovered;
  must(found.resourceMetadata.resource === setup.resource, 'the resource has another name');
  must(found.authorizationServerMetadata.issuer === setup.issuer, 'the issuer has another name');
  yes('discover');
  must(!setup.clientMetadataUrl || provider.kept.client.client_id === setup.clientMetadataUrl, `it is client ${provider.kept.client.client_id}`);
  yes('register');

  const app = {
    provider,
    client,
    async signInAgain() {
      const location = await person(provider.kept.url);
      must(location.searchParams.get('state') === provider.kept.state, 'another state came back');
      await sdk.finish(transport, location);
    },
  };
  await app.signInAgain();
  await client.connect(open());
  must(provider.kept.tokens.refresh_token, 'there is no refresh token');
  yes('sign in');
  return app;
}
