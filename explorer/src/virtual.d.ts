declare module "virtual:language" {
    export const functions: string[];
    export const keywords: string[];
}
